"""What encloses an instant on a host thread.

Nesting is told by time alone: of a set of events, the innermost at an instant is the one that started last of those
that cover it, the outermost the one that started first. Python's own ids are not needed, events that cross one
another do no harm, and nothing is computed for the many events nobody asks about.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import frames
from torchdiag.trace import classify
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]


def innermost(trace: Trace, rows: Rows, track: NDArray[np.int32], instant: NDArray[np.int64]) -> Rows:
    """Of `rows` (any order), the latest-starting one that covers each instant on its thread; -1 where none does.

    `track` int32[m] and `instant` int64[m] (nanoseconds of the trace's clock) are the questions; the answer is
    int64[m]. Intervals are half open. Of events that start together the shorter one is inside, of equal ones that of
    the higher row.
    """
    return _covering(trace, rows, track, instant, outermost=False)


def outermost(trace: Trace, rows: Rows, track: NDArray[np.int32], instant: NDArray[np.int64]) -> Rows:
    """As `innermost`, but the earliest-starting one."""
    return _covering(trace, rows, track, instant, outermost=True)


def user_frames(trace: Trace) -> Rows:
    """Rows of the Python frames outside torch and the standard library, ascending."""
    python = np.flatnonzero(trace.kind == Kind.PYTHON)
    return python[classify.by_name(trace, python, frames.is_user) != 0]


def _covering(
    trace: Trace, rows: Rows, track: NDArray[np.int32], instant: NDArray[np.int64], *, outermost: bool
) -> Rows:
    answer = np.full(len(instant), -1, np.int64)
    for events, questions in _by_thread(trace, rows, track):
        instants, which = np.unique(instant[questions], return_inverse=True)
        starts = trace.ts_ns[events]
        ends = starts + trace.dur_ns[events]
        first = np.searchsorted(instants, starts)
        after = np.searchsorted(instants, ends)
        asked = np.flatnonzero(first < after)
        order = asked[np.lexsort((events[asked], -ends[asked], starts[asked]))]
        if outermost:
            order = order[::-1]
        winner = _last_cover(first[order], after[order], len(instants))
        found = np.full(len(winner), -1, np.int64)
        found[winner >= 0] = events[order[winner[winner >= 0]]]
        answer[questions] = found[which]
    return answer


def _by_thread(trace: Trace, rows: Rows, track: NDArray[np.int32]) -> Iterator[tuple[Rows, NDArray[np.int64]]]:
    """The events and the questions of each thread that is asked about and has events; track -1 is no thread."""
    wanted = np.zeros(len(trace.tracks) + 1, np.bool_)
    wanted[track] = True
    wanted[-1] = False
    rows = rows[wanted[trace.track[rows]]]
    tracks = trace.track[rows]
    for one in np.unique(tracks).tolist():
        yield rows[tracks == one], np.flatnonzero(track == one)


def _last_cover(first: NDArray[np.int64], after: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """For each of `length` cells the greatest i with first[i] <= cell < after[i], -1 without one.

    Every interval is two overlapping blocks of a power of two; blocks are noted level by level and handed down to
    their halves, so that the cost is length * log(length) however long the intervals are.
    """
    best = np.full(length, -1, np.int64)
    if not len(first):
        return best
    levels = np.frexp((after - first).astype(np.float64))[1] - 1
    for level in range(int(levels.max()), -1, -1):
        here = np.flatnonzero(levels == level)
        np.maximum.at(best, first[here], here)
        np.maximum.at(best, after[here] - (1 << level), here)
        if level:
            # `best[i]` now speaks for the block of 2**level cells at i: pass it to both halves.
            half = 1 << (level - 1)
            best[half:] = np.maximum(best[half:], best[:-half])
    return best
