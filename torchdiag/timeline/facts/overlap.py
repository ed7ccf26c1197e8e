"""How much of one set of intervals another set covers."""

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals

Times = NDArray[np.int64]


def covered_ns(start: Times, end: Times, by_start: Times, by_end: Times) -> Times:
    """int64[k]: how much of each interval [start, end) the other intervals (any order, may overlap) cover."""
    order = np.argsort(by_start, kind="stable")
    low, high = intervals.union(by_start[order], by_end[order])
    return _before(end, low, high) - _before(start, low, high)


def _before(instant: Times, low: Times, high: Times) -> Times:
    """int64[k]: covered time before each instant; the intervals are disjoint and ascending."""
    if not len(low):
        return np.zeros(len(instant), np.int64)
    total = np.concatenate(([0], np.cumsum(high - low)))
    place = np.searchsorted(low, instant, side="right") - 1
    inside = np.maximum(place, 0)
    return total[inside] + np.where(place >= 0, np.clip(instant - low[inside], 0, (high - low)[inside]), 0)
