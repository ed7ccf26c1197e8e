"""The stretches of host threads that events and changes stand for."""

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import recorded
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
