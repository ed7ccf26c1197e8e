"""What Python code calls: read a trace, break its time down, show the result.

Each form of a result imports what it needs when it is asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from torchdiag.errors import TorchdiagError
from torchdiag.timeline import analysis, result
from torchdiag.trace import load as reading
from torchdiag.trace.columns import Trace

if TYPE_CHECKING:
    import pandas as pd

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


def load(path: str | os.PathLike[str]) -> Trace:
    """Read a trace: JSON, gzip or zip, damaged or not; `-` is standard input.

    Raises `torchdiag.TorchdiagError` when nothing can be read from it. What was damaged is in the trace's `quality`.
    """
    return reading.load(path)


def breakdown(
    trace: Trace | str | os.PathLike[str],
    *,
    steps: str | slice | None = None,
    window: str | tuple[int, int] | None = None,
    device: int | None = None,
    top: int = DEFAULT_TOP,
) -> Breakdown:
    """Say where every nanosecond of device time of a trace, or of the file at a path, went.

    `steps` chooses steps, counted from 0 (`"2:5"`, `slice(2, 5)`). `window` chooses a stretch of time: `"12ms:40ms"`
    after the trace's first event, or a pair of nanoseconds in the trace's own clock. `device` keeps one device, and
    `top` is how many places are listed for a cause.

    Raises `torchdiag.TorchdiagError` for a trace that cannot be read or holds no events, and for steps, windows or
    devices that it does not have.
    """
    if not isinstance(trace, Trace):
        trace = load(trace)
    chosen_steps = _written(steps) if isinstance(steps, slice) else steps
    chosen_window = f"{window[0]}:{window[1]}" if isinstance(window, tuple) else window
    found = analysis.analyse(trace, steps=chosen_steps, window=chosen_window, device=device, top=top)
    return Breakdown(*(getattr(found, field.name) for field in fields(found)))


def _written(steps: slice) -> str:
    if steps.step not in (None, 1):
        raise TorchdiagError(f"steps {steps}: the chosen steps have to follow one another")
    return ":".join("" if bound is None else str(bound) for bound in (steps.start, steps.stop))
