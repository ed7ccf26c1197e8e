"""Instants that wait for one another: `native/replay.h` for numpy arrays."""

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import library
from torchdiag._native.innermost import address, plain

Numbers = NDArray[np.int64]

NO_EDGE = int(np.iinfo(np.int64).min)
"""A lag of an edge that does not count."""


def order(first: Numbers, source: Numbers, wish: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """The nodes in an order in which each comes after the sources of its edges, and which edges that order keeps.

    The edges into node `i` are `first[i]` to `first[i + 1]`, `source` has a node for each edge, `wish` is the order to
    stay near to, a permutation of the nodes. Where edges run in a circle one of them is not kept.
    """
    first, source, wish = plain(first, np.int64), plain(source, np.int64), plain(wish, np.int64)
    if len(first) != len(wish) + 1:
        raise ValueError(f"{len(wish)} nodes do not fit {len(first)} bounds")
    found, kept = np.empty(len(wish), np.int64), np.empty(len(source), np.uint8)
    library.check(
        library.load().td_replay_order(
            len(wish), address(first), len(source), *map(address, (source, wish, found, kept))
        )
    )
    return found, kept != 0


def times(first: Numbers, source: Numbers, lag: Numbers, floor: Numbers) -> Numbers:
    """int64[n]: the latest of each node's `floor` and of `times[source] + lag` over its edges.

    `first` and `source` as for `order`; every source is a smaller number than its node.
    """
    first, source = plain(first, np.int64), plain(source, np.int64)
    lag, floor = plain(lag, np.int64), plain(floor, np.int64)
    if len(first) != len(floor) + 1 or len(lag) != len(source):
        raise ValueError(f"{len(floor)} nodes and {len(source)} edges do not fit {len(first)} bounds, {len(lag)} lags")
    found = np.empty(len(floor), np.int64)
    library.check(
        library.load().td_replay_times(
            len(floor), address(first), len(source), *map(address, (source, lag, floor, found))
        )
    )
    return found
