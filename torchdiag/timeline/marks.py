"""Step marks on the host, and the thread that drives the steps."""

import numpy as np
from numpy.typing import NDArray

from torchdiag.trace.columns import Trace
from torchdiag.trace.find_text import holding
from torchdiag.trace.vocabulary import STEP_MARK, Call, Kind

NO_TRACK = -1


def marks(trace: Trace) -> NDArray[np.int64]:
    """int64: rows of the host annotations that mark steps, by (start, end, row)."""
    named = np.zeros(len(trace.names) + 1, np.bool_)  # the last is for NO_TEXT, which is -1
    named[[code for code in holding(trace.names, STEP_MARK).tolist() if trace.names[code].startswith(STEP_MARK)]] = True
    if not named.any():
        return np.empty(0, np.int64)
    rows = np.flatnonzero(trace.kind == Kind.ANNOTATION)
    rows = rows[named[trace.name[rows]]]
    start = trace.ts_ns[rows]
    return rows[np.lexsort((rows, start + trace.dur_ns[rows], start))]


def driver(trace: Trace, marks: NDArray[np.int64]) -> int:
    """The track of the driver thread, -1 when no thread has a mark or a launch call.

    That is the one with most step marks; among equals the one with most launch calls, then with the earliest one,
    then the first by process and thread.
    """
    launches = np.flatnonzero(trace.call == Call.LAUNCH)
    mark_count = np.bincount(trace.track[marks], minlength=len(trace.tracks))
    launch_count = np.bincount(trace.track[launches], minlength=len(trace.tracks))
    first = np.full(len(trace.tracks), np.iinfo(np.int64).max)
    np.minimum.at(first, trace.track[launches], trace.ts_ns[launches])
    candidates = np.flatnonzero(mark_count + launch_count).tolist()

    def order(track: int) -> tuple[int, int, int, tuple[str, str]]:
        place = (str(trace.tracks.pids[track]), str(trace.tracks.tids[track]))
        return -int(mark_count[track]), -int(launch_count[track]), int(first[track]), place

    return min(candidates, key=order, default=NO_TRACK)
