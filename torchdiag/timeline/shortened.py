"""The stretches of host threads that events and changes stand for."""

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals, recorded
from torchdiag.timeline.changes import Change
from torchdiag.timeline.replay_lines import Stretches
from torchdiag.trace.columns import Trace

Rows = NDArray[np.int64]


def stretches_of(trace: Trace, rows: Rows) -> Stretches:
    """The time of each host event. What was recorded beside the profiler is time of the thread that it tells."""
    start = trace.ts_ns[rows]
    thread = recorded.threads(trace)[trace.track[rows]].astype(np.int64)
    return Stretches(thread, start, start + np.maximum(trace.dur_ns[rows], 0))


def shortened(trace: Trace, change: Change) -> Stretches:
    """What a change shortens: its events, its runs of them (each on the thread of its first event), and its pieces."""
    first, last = change.runs[:, 0], change.runs[:, 1]
    begin, end = stretches_of(trace, first), stretches_of(trace, last)
    run = Stretches(begin.track, begin.start_ns, np.maximum(begin.start_ns, end.end_ns))
    return Stretches.join(stretches_of(trace, change.shortened), run, Stretches(*change.pieces.T))


def spans_of(stretches: Stretches) -> list[tuple[Rows, Rows]]:
    """For each thread that has some of the stretches: start and end of their union, ascending."""
    spans: list[tuple[Rows, Rows]] = []
    for number in np.flatnonzero(np.bincount(stretches.track, minlength=1)).tolist():
        mine = np.flatnonzero(stretches.track == number)
        mine = mine[np.argsort(stretches.start_ns[mine], kind="stable")]
        spans.append(intervals.union(stretches.start_ns[mine], stretches.end_ns[mine]))
    return spans
