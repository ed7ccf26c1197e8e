"""Half-open intervals in arrays: unions, complements, cuts. All times are int64 nanoseconds."""

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


def union(start: Times, end: Times) -> tuple[Times, Times]:
    """Maximal stretches covered by intervals sorted by start; intervals without length cover nothing."""
    long = end > start
    start, end = start[long], end[long]
    if not len(start):
        return start, end
    reach = np.maximum.accumulate(end)
    fresh = np.flatnonzero(start[1:] > reach[:-1]) + 1
    first = np.concatenate(([0], fresh))
    last = np.concatenate((fresh - 1, [len(start) - 1]))
    return start[first], reach[last]


def length(start: Times, end: Times) -> int:
    """Total length of disjoint intervals."""
    return int((end - start).sum())


def between(start: Times, end: Times, low: int, high: int) -> tuple[Times, Times]:
    """What of [low, high) the disjoint, ascending intervals within it leave free."""
    left = np.concatenate((np.array([low], np.int64), end))
    right = np.concatenate((start, np.array([high], np.int64)))
    free = right > left
    return left[free], right[free]


def cut(start: Times, end: Times, bounds: Times) -> tuple[Times, Times, NDArray[np.int64]]:
    """Intervals cut at the ascending `bounds` that lie strictly inside them.

    Gives the pieces' starts and ends, and which interval each is a piece of; an interval's pieces follow each other in
    time, the intervals keep their order.
    """
    first = np.searchsorted(bounds, start, side="right")
    pieces = np.searchsorted(bounds, end, side="left") - first
    pieces = np.maximum(pieces, 0) + 1
    whole = np.repeat(np.arange(len(start)), pieces)
    if len(whole) == len(start):
        return start, end, whole
    number = np.arange(len(whole)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    inner = first[whole] + number  # the bound where a piece ends, unless it is the last of its interval
    last = number == pieces[whole] - 1
    piece_end = np.where(last, end[whole], bounds[np.minimum(inner, len(bounds) - 1)])
    piece_start = np.where(number == 0, start[whole], bounds[np.maximum(inner - 1, 0)])
    return piece_start, piece_end, whole


def inside(start: Times, end: Times, instant: Times) -> NDArray[np.int64]:
    """Which of the disjoint, ascending intervals each instant lies in, -1 for none."""
    place = np.searchsorted(start, instant, side="right") - 1
    covered = (place >= 0) & (instant < end[np.maximum(place, 0)]) if len(start) else np.zeros(len(instant), np.bool_)
    return np.where(covered, place, -1)
