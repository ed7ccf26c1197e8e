"""Looking up many values in ascending ones: `native/lookup.h` for numpy arrays.

As `numpy.searchsorted` finds them, but each search begins where the last one ended: several times faster for what comes
nearly in order, as rows and times do.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import library
from torchdiag._native.innermost import address, plain

Numbers = NDArray[np.int64]


def places(keys: Numbers, wanted: Numbers) -> Numbers:
    """int64[m]: how many of the ascending keys are less than each wanted value."""
    keys, wanted = plain(keys, np.int64), plain(wanted, np.int64)
    found = np.empty(len(wanted), np.int64)
    library.load().td_places(len(keys), address(keys), len(wanted), address(wanted), address(found))
    return found


def values_at(
    rows: NDArray[np.uint32], values: NDArray[Any], wanted: NDArray[Any], missing: NDArray[Any]
) -> NDArray[Any]:
    """The value of each wanted row in a sparse column (ascending rows, values of 4 or 8 bytes), `missing` without one.

    `missing` is an array of one value of the type of `values`.
    """
    rows, values, wanted = plain(rows, np.uint32), np.ascontiguousarray(values), plain(wanted, np.int64)
    found = np.empty(len(wanted), values.dtype)
    library.load().td_values_at(
        len(rows),
        address(rows),
        address(values),
        values.itemsize,
        len(wanted),
        address(wanted),
        address(missing),
        address(found),
    )
    return found


def kinds(
    category: NDArray[np.int32],
    phase: NDArray[np.uint8],
    times: tuple[Numbers, Numbers],
    category_kind: NDArray[np.uint8],
    complete: int,
) -> NDArray[np.uint8]:
    """uint8[n]: `category_kind[category + 1]`; 0 where the phase is not `complete` or there is no start or no duration.

    `times` are starts and durations, whole columns; a negative duration is none.
    """
    columns = (plain(category, np.int32), plain(phase, np.uint8), *(plain(column, np.int64) for column in times))
    table = plain(category_kind, np.uint8)
    found = np.empty(len(category), np.uint8)
    library.load().td_kinds(len(found), *map(address, (*columns, table)), complete, address(found))
    return found
