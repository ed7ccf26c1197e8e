"""Whether one lot of step times is slower than another, when steps of one process resemble each other.

Steps of a process share its memory layout, its clocks and its neighbours; they are no independent samples. What may be
exchanged, if nothing has changed, are whole processes. So the statistic is that of Mann and Whitney over all raw steps
(how often a step of B is slower than one of A), and its distribution is that over all ways to deal the processes to A
and B: an exact permutation test (Pitman 1937) where those are few enough, else a sample of them with a fixed seed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

MOST_DEALS: Final = 20_000
"""So many ways to deal are tried at most."""

_SEED: Final = 20230103


@dataclass(frozen=True, slots=True)
class Shift:
    """How B's steps compare with A's.

    `ratio` is the median of b / a over all pairs of a step of A and one of B (Hodges and Lehmann 1963, of ratios).
    `superiority` is the share of pairs in which B is slower, ties halved; `p` how often chance alone deals one as far
    from a half. `least_p` is the smallest that so many processes can give.
    """

    ratio: float
    superiority: float
    p: float
    least_p: float


def compare(a: Sequence[Sequence[int]], b: Sequence[Sequence[int]]) -> Shift:
    """Compare the step times of the processes of A with those of B; each has at least one step."""
    processes = [np.asarray(steps, np.float64) for steps in (*a, *b)]
    wins = _wins(processes)
    sizes = np.array([len(steps) for steps in processes], np.float64)
    count, total = len(a), len(processes)
    observed = float(_superiority(wins, sizes, _dealt([range(count)], total))[0])
    distance = abs(observed - 0.5)
    exact = math.comb(total, count) <= MOST_DEALS
    dealt = _superiority(wins, sizes, _dealt(_deals(total, count, exact=exact), total))
    # They are sums of halves: only rounding of the division is to be allowed for.
    far = int((np.abs(dealt - 0.5) >= distance - 1e-12).sum())
    p = far / len(dealt) if exact else (far + 1) / (len(dealt) + 1)
    return Shift(_ratio(a, b), observed, p, least_p(count, total - count))


def least_p(a: int, b: int) -> float:
    """The smallest `p` that `a` processes against `b` can give: that of the two extreme deals."""
    return min(2 / math.comb(a + b, a), 1.0)


def _wins(processes: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """float64[n, n]: in how many pairs of a step of row's process and one of column's, column's is slower."""
    count = len(processes)
    wins = np.zeros((count, count))
    for row, steps in enumerate(processes):
        ordered = np.sort(steps)
        for column, others in enumerate(processes):
            below = np.searchsorted(ordered, others, side="left").sum()
            up_to = np.searchsorted(ordered, others, side="right").sum()
            wins[row, column] = (below + up_to) / 2
    return wins


def _superiority(
    wins: NDArray[np.float64], sizes: NDArray[np.float64], to_a: NDArray[np.float64]
) -> NDArray[np.float64]:
    """float64[deals]: the share of pairs in which the step of a process that is not dealt to A is slower."""
    to_b = 1 - to_a
    return ((to_a @ wins) * to_b).sum(axis=1) / ((to_a @ sizes) * (to_b @ sizes))


def _deals(total: int, count: int, *, exact: bool) -> list[Sequence[int]]:
    if exact:
        return list(combinations(range(total), count))
    generator = np.random.default_rng(_SEED)
    return [generator.permutation(total)[:count].tolist() for _ in range(MOST_DEALS)]


def _dealt(deals: Sequence[Sequence[int]], total: int) -> NDArray[np.float64]:
    """float64[deals, total]: 1 for the processes that are A's in each deal, 0 for the others."""
    to_a = np.zeros((len(deals), total))
    to_a[np.arange(len(deals))[:, None], np.array(deals)] = 1
    return to_a


def _ratio(a: Sequence[Sequence[int]], b: Sequence[Sequence[int]]) -> float:
    of_a = np.concatenate([np.asarray(steps, np.float64) for steps in a])
    of_b = np.concatenate([np.asarray(steps, np.float64) for steps in b])
    return float(np.median(of_b[None, :] / of_a[:, None]))
