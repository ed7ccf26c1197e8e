"""The innermost event at every instant of some stretches of time: `native/innermost.h` for numpy arrays."""

import ctypes
from bisect import bisect_right
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import library

Numbers = NDArray[np.int64]


def touching(
    kind: NDArray[np.uint8],
    track: NDArray[np.int32],
    ts_ns: Numbers,
    dur_ns: Numbers,
    wanted: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    stretches: tuple[Numbers, Numbers],
) -> Numbers:
    """int64: rows of wanted kind and track whose event lasts and overlaps one of the stretches, ascending.

    `kind`, `track`, `ts_ns` and `dur_ns` are whole columns; `wanted` is bool[256] by kind and bool by track;
    `stretches` are starts and ends, disjoint and ascending.
    """
    columns = (plain(kind, np.uint8), plain(track, np.int32), plain(ts_ns, np.int64), plain(dur_ns, np.int64))
    masks = [plain(mask, np.bool_) for mask in wanted]
    start, end = (plain(side, np.int64) for side in stretches)
    found = np.empty(len(kind), np.int64)
    count = library.load().td_touching(
        len(kind), *map(address, (*columns, *masks)), len(start), *map(address, (start, end, found))
    )
    return found[:count]


class Thread:
    """The events of one thread, ready to be asked which of them is innermost.

    `row` (int64) are events with a positive duration, by start, and of those that start together the inner one later;
    `ts_ns` and `dur_ns` are whole columns.
    """

    def __init__(self, row: Numbers, ts_ns: Numbers, dur_ns: Numbers) -> None:
        self.row = plain(row, np.int64)
        self._ts_ns, self._dur_ns = plain(ts_ns, np.int64), plain(dur_ns, np.int64)

    @cached_property
    def _columns(self) -> list[NDArray[Any]]:
        columns = [self.row, self._ts_ns, self._dur_ns, np.empty(len(self.row), np.int32)]
        library.load().td_outlasting(len(self.row), *map(address, columns))
        return columns

    def at(self, instant: Numbers) -> Numbers:
        """int64[m]: the row of the innermost event at each instant, -1 for none."""
        questions = plain(instant, np.int64)
        found = np.empty(len(questions), np.int64)
        library.load().td_innermost_at(
            len(self.row), *map(address, self._columns), len(questions), address(questions), address(found)
        )
        return found

    def pieces(self, start_ns: Numbers, end_ns: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Pieces of stretches with one innermost event each: start, end, row (-1 for none), number of the stretch.

        The stretches are disjoint and ascending, and none is empty.
        """
        start, end = plain(start_ns, np.int64), plain(end_ns, np.int64)
        pieces = [np.empty(self._most_pieces(start, end), np.int64) for _ in range(4)]
        count = library.load().td_innermost(
            len(self.row), *map(address, self._columns), len(start), *map(address, (start, end, *pieces))
        )
        if count < 0:
            raise MemoryError("there is not enough memory to look through the host's events")
        piece_start, piece_end, event, stretch = (column[:count] for column in pieces)
        return piece_start, piece_end, event, stretch

    def _most_pieces(self, start: Numbers, end: Numbers) -> int:
        """What `pieces` needs room for: an event begins one and leaves one behind it, a stretch begins one."""
        if not len(start):
            return 0
        row, ts, _, outlasting = self._columns
        first, last = (
            bisect_right(range(len(row)), instant, key=lambda event: int(ts[row[event]]))
            for instant in (int(start[0]), int(end[-1]))
        )
        open_before, event = 0, first - 1
        while event >= 0:
            open_before, event = open_before + 1, int(outlasting[event])
        return 2 * (last - first + open_before) + len(start)


def outlasting(end: Numbers) -> Numbers:
    """int64[n]: for each of n events of one thread, by start, the nearest earlier one that ends later; -1 for none.

    `end` (int64, positive) is when each ends; of events that start together the inner one comes later.
    """
    end = plain(end, np.int64)
    found = np.empty(len(end), np.int32)
    numbers, start = np.arange(len(end)), np.zeros(len(end), np.int64)
    library.load().td_outlasting(len(end), *map(address, (numbers, start, end, found)))
    return found.astype(np.int64)


def plain(column: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """The array as the library reads it; itself when it already lies so."""
    return np.ascontiguousarray(column, dtype)


def address(column: NDArray[Any]) -> ctypes.c_void_p:
    """Where an array lies."""
    return ctypes.c_void_p(column.ctypes.data)
