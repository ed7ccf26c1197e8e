"""What host threads do at every instant of given stretches of time.

Only the events that overlap a stretch are looked at; a trace has millions of others.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import innermost as native
from torchdiag.timeline.waits import name_order
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Times = NDArray[np.int64]

INNER_FIRST = (Kind.RUNTIME, Kind.OVERHEAD, Kind.OPERATOR, Kind.PYTHON, Kind.ANNOTATION)
"""Kinds of host events; of two that start and end together the one named first is the inner one."""

HOST_KINDS = np.array([kind in INNER_FIRST for kind in range(256)])


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Stretches cut into pieces of one innermost event each, in time order within each stretch.

    `start_ns`, `end_ns` int64; `event` int64, a row, -1 where no event of the thread covers the piece; `stretch`
    int64, which of the given stretches it is a piece of.
    """

    start_ns: Times
    end_ns: Times
    event: NDArray[np.int64]
    stretch: NDArray[np.int64]


class HostStates:
    """The host events that overlap some stretches of time, ready to be asked which of them is the innermost one.

    At an instant that is the event of latest start, of those the one of earliest end, then by `INNER_FIRST`, then by
    name, then by row. Events of one thread may cross one another.
    """

    def __init__(self, trace: Trace, tracks: Iterable[int], start_ns: Times, end_ns: Times) -> None:
        """Take the events of some threads that overlap the stretches (disjoint, ascending)."""
        wanted = np.zeros(len(trace.tracks), np.bool_)
        wanted[list(tracks)] = True
        rows = native.touching(
            trace.kind, trace.track, trace.ts_ns, trace.dur_ns, (HOST_KINDS, wanted), (start_ns, end_ns)
        )
        track = trace.track[rows]
        self._threads = {
            number: native.Thread(
                inner_later(trace, rows if count == len(rows) else rows[track == number]), trace.ts_ns, trace.dur_ns
            )
            for number, count in enumerate(np.bincount(track).tolist())
            if count
        }

    def pieces(self, track: int, start_ns: Times, end_ns: Times) -> Pieces:
        """The innermost events of a thread in stretches (disjoint, ascending, within those given at the start)."""
        long = np.flatnonzero(end_ns > start_ns)
        thread = self._threads.get(track)
        if thread is None:
            return Pieces(start_ns[long], end_ns[long], np.full(len(long), -1), long)
        start, end, event, stretch = thread.pieces(start_ns[long], end_ns[long])
        return Pieces(start, end, event, long[stretch])


def inner_later(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows by start, and of those that start together the inner ones later."""
    start = trace.ts_ns[rows]
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        rows, start = rows[order], start[order]
    same = np.zeros(len(rows) + 1, np.bool_)
    same[1:-1] = start[1:] == start[:-1]
    together = np.flatnonzero(same[1:] | same[:-1])
    if len(together):
        tied = rows[together]
        order = np.lexsort(
            (-tied, -name_order(trace, tied), outwards(trace, tied), -trace.dur_ns[tied], start[together])
        )
        rows[together] = tied[order]
    return rows


def outwards(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int8]:
    """int8[k]: minus the place of each row's kind in `INNER_FIRST`."""
    place = np.zeros(256, np.int8)
    place[list(INNER_FIRST)] = -np.arange(len(INNER_FIRST), dtype=np.int8)
    return place[trace.kind[rows]]
