"""The outermost `aten::` operators of each thread, in the order in which the program called them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import Nesting, named, nesting
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class OperatorOrder:
    """What a program called one after the other, whatever modules and annotations it was in.

    `row` int64[m]: the outermost `aten::` operators by (track, start). `position` int64[n]: the place of each trace row
    in `row`, -1 for other rows. `aten` bool[n]: the rows of all `aten::` operators.
    """

    trace: Trace
    tree: Nesting
    row: Rows
    position: NDArray[np.int64]
    aten: NDArray[np.bool_]

    def around(self, rows: Rows) -> Rows:
        """int64[k]: the outermost `aten::` operator around each host row, or the row itself; -1 without one."""
        found = np.full(len(rows), -1, np.int64)
        known = np.flatnonzero(rows >= 0)
        found[known] = self.tree.outermost(rows[known], self.aten)
        return found

    def neighbour(self, tops: Rows, distance: int) -> Rows:
        """int64[k]: what the same thread called `distance` operators after each of `tops` (before, if negative)."""
        found = np.full(len(tops), -1, np.int64)
        known = np.flatnonzero(tops >= 0)
        place = self.position[tops[known]] + distance
        inside = (place >= 0) & (place < len(self.row)) & (self.position[tops[known]] >= 0)
        known, other = known[inside], self.row[place[inside]]
        same = self.trace.track[other] == self.trace.track[tops[known]]
        found[known[same]] = other[same]
        return found

    def through(self, runs: NDArray[np.int64]) -> Rows:
        """The outermost operators from the first to the last of each run (rows, int64[k, 2]), both included."""
        spans = [np.arange(first, last + 1, dtype=np.int64) for first, last in self.position[runs].tolist()]
        return self.row[np.concatenate([np.empty(0, np.int64), *spans])]

    def name(self, row: int) -> str:
        """The name of a row, "" for -1."""
        return self.trace.names[int(self.trace.name[row])] if row >= 0 else ""


def operator_order(facts: Facts) -> OperatorOrder:
    """The outermost `aten::` operators of each thread in order."""
    trace, tree = facts.trace, facts.get(nesting)
    rows = named(trace, Kind.OPERATOR, lambda name: name.startswith("aten::"))
    aten = tree.mask(rows)
    tops = rows[tree.nearest(rows, aten) < 0]
    tops = tops[np.lexsort((tops, trace.ts_ns[tops], trace.track[tops]))]
    position = np.full(len(trace), -1, np.int64)
    position[tops] = np.arange(len(tops))
    return OperatorOrder(trace, tree, tops, position, aten)
