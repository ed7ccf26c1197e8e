"""What Python code calls: read a trace, break its time down, show the result.

Each form of a result imports what it needs when it is asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchdiag.errors import TorchdiagError
from torchdiag.timeline import analysis, recorded, result
from torchdiag.trace import load as reading
from torchdiag.trace.columns import Trace
from torchdiag.trace.source import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from torchdiag.findings.finding import Diagnosis

DEFAULT_TOP = 3
"""Places listed for each cause."""


@dataclass(frozen=True, slots=True)
class Breakdown(result.Breakdown):
    """Where every nanosecond of device time went; a notebook shows it as a page."""

    def to_dict(self) -> dict[str, Any]:
        """The document that `torchdiag breakdown --json` prints, as plain Python values."""
        from torchdiag.report.breakdown_json import to_dict  # noqa: PLC0415

        return to_dict(self)

    def to_frame(self) -> pd.DataFrame:
        """One row a device, with the columns of `torchdiag breakdown --csv`; nanoseconds as `Int64`."""
        from torchdiag.report.breakdown_frame import to_frame  # noqa: PLC0415 - pandas takes most of a second

        return to_frame(self)

    def _repr_html_(self) -> str:
        from torchdiag.report.breakdown_html import to_html  # noqa: PLC0415

        return to_html(self)


def load(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Trace:
    """Read a trace: JSON, gzip or zip, damaged or not; `-` is standard input, a run's folder its light recording.

    Raises `torchdiag.TorchdiagError` when nothing can be read from it. What was damaged is in the trace's `quality`.
    `progress` is told the bytes read so far, and how many there are if that is known.
    """
    if Path(path).is_dir():
        from torchdiag.history import run_folder  # noqa: PLC0415 - traces that are files are read without it

        path = run_folder.trace_of(path)
    return reading.load(path, progress=progress)


def breakdown(
    trace: Trace | str | os.PathLike[str],
    *,
    steps: str | slice | None = None,
    window: str | tuple[int, int] | None = None,
    device: int | None = None,
    top: int = DEFAULT_TOP,
    progress: Progress | None = None,
) -> Breakdown:
    """Say where every nanosecond of device time of a trace, or of the file or run folder at a path, went.

    A run's numbers are those of its light recording; unless `steps` or `window` choose a part of it, its places are
    those of the detailed one.

    `steps` chooses steps, counted from 0 (`"2:5"`, `slice(2, 5)`). `window` chooses a stretch of time: `"12ms:40ms"`
    after the trace's first event, or a pair of nanoseconds in the trace's own clock. `device` keeps one device, and
    `top` is how many places are listed for a cause. `progress` is told the bytes read of a file so far.

    Raises `torchdiag.TorchdiagError` for a trace that cannot be read or holds no events, and for steps, windows or
    devices that it does not have.
    """
    folder = None
    if not isinstance(trace, Trace):
        folder = trace if Path(trace).is_dir() else None
        trace = load(trace, progress=progress)
    chosen_steps = _written(steps) if isinstance(steps, slice) else steps
    chosen_window = f"{window[0]}:{window[1]}" if isinstance(window, tuple) else window
    found = analysis.analyse(trace, steps=chosen_steps, window=chosen_window, device=device, top=top)
    found = replace(found, recorded=recorded.in_trace(trace))
    if folder is not None:
        from torchdiag.timeline import run_breakdown  # noqa: PLC0415 - traces that are files need none of it

        whole = steps is None and window is None
        found = run_breakdown.completed(found, trace, folder, device=device, top=top, whole=whole)
    return Breakdown(*(getattr(found, field.name) for field in fields(found)))


def diagnose(
    trace: Trace | str | os.PathLike[str],
    *,
    rules: Sequence[str] = (),
    ignore: Sequence[str] = (),
    progress: Progress | None = None,
) -> Diagnosis:
    """Name the bugs of a trace, or of the file or run folder at a path, with what fixing each would win.

    `rules` are the ids of the rules to ask (all where empty), `ignore` of those not to ask. The numbers of a run are
    those of its light recording. `progress` is told the bytes read of a file so far.

    Raises `torchdiag.TorchdiagError` for a trace that cannot be read or holds no events, and for unknown ids.
    """
    from torchdiag.diagnosis import diagnose as diagnosing  # noqa: PLC0415 - a breakdown needs no rules
    from torchdiag.diagnosis.discovery import chosen  # noqa: PLC0415
    from torchdiag.timeline.facts.facts import Facts  # noqa: PLC0415

    asked = chosen(rules, ignore)
    if isinstance(trace, Trace) or not Path(trace).is_dir():
        found = trace if isinstance(trace, Trace) else load(trace, progress=progress)
        return diagnosing.diagnose(Facts.of(found), asked)
    from torchdiag.diagnosis.of_run import diagnose_run  # noqa: PLC0415
    from torchdiag.history import run_folder  # noqa: PLC0415 - as in `load`

    folder = run_folder.read(trace)
    return diagnose_run(Facts.of(load(trace, progress=progress), folder), folder, asked)


def _written(steps: slice) -> str:
    if steps.step not in (None, 1):
        raise TorchdiagError(f"steps {steps}: the chosen steps have to follow one another")
    return ":".join("" if bound is None else str(bound) for bound in (steps.start, steps.stop))
