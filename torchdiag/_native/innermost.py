"""The innermost event at every instant of some stretches of time: `native/innermost.h` for numpy arrays."""

import ctypes
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


def innermost(
    row: Numbers, ts_ns: Numbers, dur_ns: Numbers, stretches: tuple[Numbers, Numbers]
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Pieces of the stretches with one innermost event each: start, end, row (-1 for none), number of the stretch.

    `row` are events of one thread, each with a positive duration, by start, and of those that start together the
    inner one later; `ts_ns` and `dur_ns` are whole columns; `stretches` are starts and ends, disjoint, ascending, and
    none is empty.
    """
    columns = [plain(column, np.int64) for column in (row, ts_ns, dur_ns)]
    start, end = (plain(side, np.int64) for side in stretches)
    pieces = [np.empty(2 * len(row) + len(start), np.int64) for _ in range(4)]
    count = library.load().td_innermost(
        len(row), *map(address, columns), len(start), *map(address, (start, end, *pieces))
    )
    if count < 0:
        raise MemoryError("there is not enough memory to look through the host's events")
    piece_start, piece_end, event, stretch = (column[:count] for column in pieces)
    return piece_start, piece_end, event, stretch


def plain(column: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """The array as the library reads it; itself when it already lies so."""
    return np.ascontiguousarray(column, dtype)


def address(column: NDArray[Any]) -> ctypes.c_void_p:
    """Where an array lies."""
    return ctypes.c_void_p(column.ctypes.data)
