"""Which host event encloses which: parents, ancestors, and what happens below an event."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import innermost as native
from torchdiag.timeline.activity import Activities
from torchdiag.timeline.facts.facts import Facts
from torchdiag.trace import classify
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

HOST_KINDS = (Kind.ANNOTATION, Kind.PYTHON, Kind.OPERATOR, Kind.RUNTIME, Kind.OVERHEAD)
"""Of events with the same interval the earlier kind encloses the later one."""


@dataclass(frozen=True, eq=False)
class Nesting:
    """The host events of a trace as trees, one a thread.

    `parent` int64[n]: the row of the innermost host event that encloses each row on its thread; -1 for the outermost
    and for rows that are no host events.
    """

    trace: Trace
    activities: Activities
    parent: Rows

    def nearest(self, rows: Rows, wanted: Mask) -> Rows:
        """int64[k]: the innermost ancestor of each row (not itself) that `wanted` (bool[n]) accepts, -1 for none."""
        found = self.parent[rows]
        climbing = np.flatnonzero((found >= 0) & ~wanted[found])
        while len(climbing):
            found[climbing] = self.parent[found[climbing]]
            above = found[climbing]
            climbing = climbing[(above >= 0) & ~wanted[above]]
        return found

    def outermost(self, rows: Rows, wanted: Mask) -> Rows:
        """int64[k]: the outermost ancestor of each row, or the row itself, that `wanted` accepts, -1 for none."""
        found = np.where(wanted[rows], rows, -1)
        above = self.nearest(rows, wanted)
        while np.any(above >= 0):
            found = np.where(above >= 0, above, found)
            climbing = np.flatnonzero(above >= 0)
            above[climbing] = self.nearest(above[climbing], wanted)
        return found

    def below(self, rows: Rows, tops: Rows) -> Mask:
        """bool[k]: which of the rows lie inside one of `tops`."""
        return self.nearest(rows, self.mask(tops)) >= 0

    def descendants(self, tops: Rows, among: Rows) -> Rows:
        """Those of the rows `among` that lie inside one of `tops`, in their order."""
        return among[self.below(among, tops)]

    def children(self, tops: Rows, among: Rows) -> Rows:
        """Those of the rows `among` whose parent is one of `tops`, in their order."""
        parent = self.parent[among]
        return among[(parent >= 0) & self.mask(tops)[parent]]

    def tops(self, rows: Rows) -> Rows:
        """The rows that lie inside none of the others, in their order."""
        return rows[~self.below(rows, rows)]

    def mask(self, rows: Rows) -> Mask:
        """bool[n]: true at `rows`."""
        mask = np.zeros(len(self.parent), np.bool_)
        mask[rows] = True
        return mask

    @cached_property
    def own_ns(self) -> NDArray[np.int64]:
        """int64[n]: the time of each host event less that of its children, at least 0; 0 for other rows."""
        own = np.where(np.isin(self.trace.kind, HOST_KINDS), np.maximum(self.trace.dur_ns, 0), 0)
        child = np.flatnonzero(self.parent >= 0)
        np.subtract.at(own, self.parent[child], np.maximum(self.trace.dur_ns[child], 0))
        return np.maximum(own, 0)

    @cached_property
    def _by_launch(self) -> tuple[Rows, Rows]:
        """Indices of the linked activities by the row of their launch, and these rows."""
        linked = np.flatnonzero(self.activities.launch >= 0)
        order = linked[np.argsort(self.activities.launch[linked], kind="stable")]
        return order, self.activities.launch[order]

    def launched_by(self, calls: Rows) -> Rows:
        """Indices into the activities that any of the calls (rows) launched, ascending."""
        order, launch = self._by_launch
        calls = np.sort(calls)
        low, high = np.searchsorted(launch, calls), np.searchsorted(launch, calls, side="right")
        number = high - low
        start = np.repeat(low - np.concatenate(([0], np.cumsum(number)[:-1])), number)
        return np.sort(order[start + np.arange(len(start))])

    def launched_below(self, tops: Rows) -> Rows:
        """Indices into the activities that were launched inside any of `tops`, or by them, ascending."""
        launch = self.activities.launch
        linked = np.flatnonzero(launch >= 0)
        mask = self.mask(tops)
        inside = (self.nearest(launch[linked], mask) >= 0) | mask[launch[linked]]
        return linked[inside]


def nesting(facts: Facts) -> Nesting:
    """The host events of a trace as trees."""
    trace = facts.trace
    rank = np.full(256, -1, np.int64)
    rank[list(HOST_KINDS)] = np.arange(len(HOST_KINDS))
    kind = rank[trace.kind]
    rows = np.flatnonzero((kind >= 0) & (trace.dur_ns >= 0))
    start, end, track = trace.ts_ns[rows], trace.ts_ns[rows] + trace.dur_ns[rows], trace.track[rows]
    order = np.lexsort((rows, kind[rows], -end, start, track))
    rows, end, track = rows[order], end[order], track[order]
    # Only the order of the ends counts; an inner event that ends together with its outer one ends before it.
    finish = np.empty(len(rows), np.int64)
    finish[np.lexsort((-np.arange(len(rows)), end))] = np.arange(1, len(rows) + 1)
    parent = np.full(len(trace), -1, np.int64)
    bounds = np.concatenate(([0], np.flatnonzero(track[1:] != track[:-1]) + 1, [len(rows)]))
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        outer = native.outlasting(finish[low:high])
        here = rows[low:high]
        parent[here] = np.where(outer >= 0, here[np.maximum(outer, 0)], -1)
    return Nesting(trace, facts.partition.activities, parent)


def named(trace: Trace, kind: Kind, accepts: Callable[[str], bool]) -> Rows:
    """Rows of one kind whose name is accepted, ascending; `accepts` runs once a distinct name."""
    rows = np.flatnonzero(trace.kind == kind)
    return rows[classify.by_name(trace, rows, accepts) != 0]


def operators(trace: Trace, *names: str) -> Rows:
    """Rows of the operators with one of the names, ascending."""
    return named(trace, Kind.OPERATOR, frozenset(names).__contains__)
