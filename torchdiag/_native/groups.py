"""Rows that are equal in several columns: `native/groups.h` for numpy arrays."""

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import library
from torchdiag._native.innermost import address, plain

Numbers = NDArray[np.int64]


def groups(columns: Sequence[NDArray[np.int32]]) -> tuple[Numbers, Numbers]:
    """int64[n] the number of each row's group (equal in all columns, of n values each), int64[g] the first row of each.

    Groups are numbered in the order of their first rows.
    """
    columns = [plain(column, np.int32) for column in columns]
    rows = len(columns[0])
    group, first = np.empty(rows, np.int64), np.empty(rows, np.int64)
    pointers = (ctypes.c_void_p * len(columns))(*(column.ctypes.data for column in columns))
    count = library.load().td_groups(rows, len(columns), pointers, address(group), address(first))
    if count < 0:
        raise MemoryError("there is not enough memory to gather places")
    return group, first[:count].copy()
