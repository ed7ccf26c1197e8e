"""Calls of certain Python functions, with all that happens inside them, and what recording their frames costs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import Nesting, named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Call, Kind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

FRAME_COST_NS = 250
"""What recording one frame takes on an ordinary machine: time that only the recording has."""


@dataclass(frozen=True, eq=False)
class PythonCalls:
    """Outermost calls of some functions in steady steps.

    `row` int64[k]: frames, ascending. `calls` int64[k]: how many of these functions' frames there are in each, itself
    included. `frames` int64[k]: how many frames of whatever function.
    """

    trace: Trace
    tree: Nesting
    row: Rows
    calls: NDArray[np.int64]
    frames: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.row)

    def part(self, chosen: Mask | Rows) -> "PythonCalls":
        """Some of them."""
        return PythonCalls(self.trace, self.tree, self.row[chosen], self.calls[chosen], self.frames[chosen])

    @property
    def total_ns(self) -> int:
        """The time of all of them, as it was recorded."""
        return int(self.trace.dur_ns[self.row].sum())

    def containing(self, rows: Rows) -> Mask:
        """bool[k]: which of them have one of the host rows inside."""
        inside = self.tree.nearest(rows, self.tree.mask(self.row))
        return self.tree.mask(inside[inside >= 0])[self.row]

    def gone(self) -> Change:
        """What no longer happens without the calls: their time, what they launch and what they wait for."""
        return self._without(0.0)

    def gone_but_recording(self) -> Change:
        """The same, less what recording their frames may have cost: that time is not there without a recording."""
        cost = FRAME_COST_NS * int(self.frames.sum())
        return self._without(min(cost / max(self.total_ns, 1), 1.0))

    def _without(self, scale: float) -> Change:
        activities = self.tree.activities
        waits = np.flatnonzero(self.trace.call == Call.SYNC)
        return Change(
            shortened=self.row,
            host_scale=scale,
            removed=activities.row[self.tree.launched_below(self.row)],
            unblocked=self.tree.descendants(self.row, waits),
        )


def python_calls(facts: Facts, accepts: Callable[[str], bool]) -> PythonCalls:
    """The outermost calls, in steady steps, of the functions whose frame's name is accepted."""
    trace, tree = facts.trace, facts.get(nesting)
    every = facts.get(steady).rows(facts, named(trace, Kind.PYTHON, accepts))
    row = np.sort(tree.tops(every))
    if not len(row):
        return PythonCalls(trace, tree, row, np.empty(0, np.int64), np.empty(0, np.int64))
    everything = facts.get(steady).rows(facts, np.flatnonzero(trace.kind == Kind.PYTHON))
    return PythonCalls(trace, tree, row, _inside(tree, row, every), _inside(tree, row, everything))


def _inside(tree: Nesting, tops: Rows, among: Rows) -> NDArray[np.int64]:
    """int64[k]: how many of the rows are one of `tops` (ascending) or lie in it."""
    mask = tree.mask(tops)
    top = np.where(mask[among], among, tree.nearest(among, mask))
    return np.bincount(np.searchsorted(tops, top[top >= 0]), minlength=len(tops)).astype(np.int64)


def per_step_ns(facts: Facts, total_ns: float) -> float:
    """The share of a steady step in a total."""
    return total_ns / len(facts.get(steady))


def matters(facts: Facts, total_ns: float, least: float) -> bool:
    """Whether a total over the steady steps is at least a share (0..1) of their time."""
    return total_ns >= least * facts.get(steady).total_ns
