"""The breakdown of a run: numbers of the light recording, places of the detailed one, and what was beside them."""

import os
from dataclasses import replace

from torchdiag.history import run_folder
from torchdiag.timeline import analysis, detailed_places, recorded, run_notes
from torchdiag.timeline.result import Breakdown
from torchdiag.trace.columns import Trace
from torchdiag.trace.load import load
from torchdiag.trace.quality import UnreadableTraceError
from torchdiag.trace.vocabulary import Kind


def completed(
    found: Breakdown, light: Trace, folder: str | os.PathLike[str], *, device: int | None, top: int | None, whole: bool
) -> Breakdown:
    """`found`, which is the breakdown of the recording `light` of the run in `folder`, with all that is known of it.

    `device` and `top` are what `found` was made with; `whole` says that it is of all steps: places of some of them
    alone cannot be told from a recording of others. Raises TorchdiagError for a folder that is no run's.
    """
    run = run_folder.read(folder)
    if whole and run.trace is not None and run.detail is not None:
        try:
            detail = load(run.detail)
        except UnreadableTraceError:
            detail = None
        if detail is not None and _has_stacks(detail):
            other = analysis.analyse(detail, device=device, top=None)
            found = detailed_places.with_places(found, other, top)
    if run.result.recorder is not None:
        found = replace(found, recorded=recorded.of_run(run.result.recorder, recorded.throwing_operators(light)))
    quality = (*run_notes.notes(run.result, found), *found.trace.quality)
    return replace(found, trace=replace(found.trace, path=os.fspath(folder), quality=quality))


def _has_stacks(trace: Trace) -> bool:
    return bool((trace.kind == Kind.PYTHON).any())
