"""What encloses an instant on a host thread.

Nesting is told by time alone: of a set of events, the innermost at an instant is the one that started last of those
that cover it, the outermost the one that started first. Python's own ids are not needed, events that cross one
another do no harm, and parents are never worked out for the many events nobody asks about.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import innermost as native
from torchdiag._native import lookup
from torchdiag.timeline import frames
from torchdiag.trace import classify
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]
Times = NDArray[np.int64]
Tracks = NDArray[np.int32]

FEW_TRACKS = 12
"""Up to so many threads, looking for the events of each costs less than sorting all."""


class Stacks:
    """Some host events of a trace, ready to be asked which of them enclose given instants.

    Questions are `track` int32[m] (-1 for no thread) and `instant` int64[m] (nanoseconds of the trace's clock); the
    answers are rows, int64[m], -1 where none of the events covers the instant on its thread. Intervals are half open.
    """

    def __init__(self, trace: Trace, rows: Rows) -> None:
        """Take the events at `rows` (ascending)."""
        self._trace = trace
        rows = rows[trace.dur_ns[rows] > 0]
        self._threads = {
            number: _Thread(trace, _outer_first(trace, theirs))
            for number, theirs in _by_track(rows, trace.track[rows], len(trace.tracks))
        }

    def __bool__(self) -> bool:
        return bool(self._threads)

    def innermost(self, track: Tracks, instant: Times) -> Rows:
        """The latest-starting event that covers each instant; of those that start together, the first to end."""
        answer = np.full(len(instant), -1, np.int64)
        for thread, asked in self._by_thread(track):
            answer[asked] = thread.events.at(instant[asked])
        return answer

    def outermost(self, track: Tracks, instant: Times) -> Rows:
        """The earliest-starting event that covers each instant; of those that start together, the last to end.

        Of events that start and end together the one written first is taken for the outer one.
        """
        answer = np.full(len(instant), -1, np.int64)
        for thread, asked in self._by_thread(track):
            place = lookup.places(thread.reach_ns, instant[asked] + 1)  # the first to end later
            place[place == len(thread.reach_ns)] = 0
            row = thread.events.row[place]
            covers = (self._trace.ts_ns[row] <= instant[asked]) & (thread.reach_ns[place] > instant[asked])
            answer[asked] = np.where(covers, row, -1)
        return answer

    def _by_thread(self, track: Tracks) -> "Iterator[tuple[_Thread, NDArray[np.int64]]]":
        """The events of each thread that has some, and which questions are about it."""
        if not self._threads or not len(track):
            return
        counts = np.bincount(track + 1, minlength=len(self._trace.tracks) + 1)
        for number in np.flatnonzero(counts[1:]).tolist():
            if number in self._threads:
                yield self._threads[number], np.flatnonzero(track == number)


class _Thread:
    """The events of one thread, outer ones first."""

    def __init__(self, trace: Trace, rows: Rows) -> None:
        self.events = native.Thread(rows, trace.ts_ns, trace.dur_ns)
        self._trace = trace

    @cached_property
    def reach_ns(self) -> Times:
        """Until when the events up to each of them reach: the first to end after an instant is the first beyond it."""
        rows = self.events.row
        return np.maximum.accumulate(self._trace.ts_ns[rows] + self._trace.dur_ns[rows])


def _by_track(rows: Rows, track: Tracks, tracks: int) -> Iterator[tuple[int, Rows]]:
    """The rows of each track that has some, in their order."""
    counts = np.bincount(track, minlength=tracks)
    present = np.flatnonzero(counts).tolist()
    if len(present) == 1:
        yield present[0], rows
    elif len(present) <= FEW_TRACKS:
        for number in present:
            yield number, rows[np.flatnonzero(track == number)]
    else:
        rows = rows[np.argsort(track.astype(np.uint16) if tracks < 1 << 16 else track, kind="stable")]
        ends = np.cumsum(counts)
        for number in present:
            yield number, rows[ends[number] - counts[number] : ends[number]]


def user_frames(trace: Trace) -> Rows:
    """Rows of the Python frames outside torch and the standard library, ascending."""
    python = np.flatnonzero(trace.kind == Kind.PYTHON)
    return python[classify.by_name(trace, python, frames.is_user) != 0]


def _outer_first(trace: Trace, rows: Rows) -> Rows:
    """The rows by start, of those that start together the longer first, of equal ones the lower row."""
    start = trace.ts_ns[rows]
    if np.any(start[1:] < start[:-1]):
        rows = rows[np.argsort(start, kind="stable")]
        start = trace.ts_ns[rows]
    same = start[1:] == start[:-1]
    if not same.any():
        return rows
    together = np.flatnonzero(np.append(same, False) | np.append(False, same))
    tied = rows[together]
    rows = rows.copy()
    rows[together] = tied[np.lexsort((tied, -trace.dur_ns[tied], start[together]))]
    return rows
