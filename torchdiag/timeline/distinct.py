"""Distinct whole numbers, found by counting rather than by sorting where they lie close together."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import lookup

Numbers = NDArray[np.int64]


def distinct(values: NDArray[Any]) -> Numbers:
    """int64: the distinct values of an array of whole numbers, ascending."""
    return numbered(values)[0]


def numbered(values: NDArray[Any]) -> tuple[Numbers, Numbers]:
    """The distinct values, ascending, and for each value which of them it is (both int64)."""
    if not len(values):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values) + 1_000:
        return sorted_and_numbered(values.astype(np.int64))
    offset = values.astype(np.int64) - low
    present = np.zeros(high - low + 1, np.bool_)
    present[offset] = True
    return np.flatnonzero(present) + low, (np.cumsum(present) - 1)[offset]


def sorted_and_numbered(values: Numbers) -> tuple[Numbers, Numbers]:
    """As `numbered`, for values that lie far apart."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    fresh = np.ones(len(values), np.bool_)
    fresh[1:] = ascending[1:] != ascending[:-1]
    number = np.empty(len(values), np.int64)
    number[order] = np.cumsum(fresh) - 1
    return ascending[fresh], number


def among(values: Numbers, others: Numbers) -> NDArray[np.bool_]:
    """bool[n]: which of the values are one of the others."""
    if not len(others):
        return np.zeros(len(values), np.bool_)
    ascending = np.sort(others)
    place = lookup.places(ascending, values)
    place[place == len(ascending)] = 0
    return ascending[place] == values


def firsts(ascending: NDArray[Any]) -> Numbers:
    """int64: where each distinct value of an ascending array comes first."""
    return np.flatnonzero(np.concatenate((np.ones(min(len(ascending), 1), np.bool_), ascending[1:] != ascending[:-1])))
