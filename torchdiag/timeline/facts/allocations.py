"""Device memory that the allocator asks of the driver in steady steps and gives back, and why."""

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.distinct import distinct
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Call, Kind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

TAKES = re.compile(
    r"^(cudaMalloc|hipMalloc|hipExtMallocWithFlags|cuMemCreate|cuMemMap|hipMemCreate|hipMemMap)(_v\d+|_ptsz)?$"
)
GIVES = re.compile(r"^(cudaFree|hipFree|cuMemUnmap|cuMemRelease|hipMemUnmap|hipMemRelease)(_v\d+|_ptsz)?$")
MAPS = re.compile(r"^(cu|hip)Mem")
EMPTIES = re.compile(r"torch[/\\](cuda|xpu|accelerator)[/\\]memory\.py\(\d+\): empty_cache$")
CAPTURES = re.compile(r"^(cuda|hip)Stream(Begin|End)Capture")
FEW_RUNS = 8
"""An emptied cache frees in a few runs; more of them in a step mean that nothing is cached."""
UNCACHED_CALLS = 20


class Reason(IntEnum):
    """Why memory is taken or given back."""

    NEEDED = 0
    UNCACHED = 1
    EMPTIED = 2
    RETRIED = 3


@dataclass(frozen=True, eq=False)
class Allocations:
    """Calls that take device memory of the driver or give it back, in steady steps, by (thread, start).

    `row` int64[k]; `gives` bool[k]: gives memory back; `reason` uint8[k] of `Reason`; `happening` int64[k]: calls with
    the same number are one run of giving back, or one retry (-1 for others).
    """

    row: Rows
    gives: Mask
    reason: NDArray[np.uint8]
    happening: NDArray[np.int64]

    def part(self, chosen: Mask | Rows) -> "Allocations":
        """Some of them."""
        return Allocations(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def of(self, reason: Reason) -> "Allocations":
        """Those for one reason."""
        return self.part(self.reason == reason)

    def expandable(self, trace: Trace) -> bool:
        """Whether memory is mapped piece by piece: expandable segments are on already."""
        return any(MAPS.match(trace.names[code]) is not None for code in distinct(trace.name[self.row]).tolist())

    @property
    def first(self) -> Rows:
        """The row of the first call of each happening, in order."""
        told = np.flatnonzero(self.happening >= 0)
        return self.row[told[np.unique(self.happening[told], return_index=True)[1]]]


def allocations(facts: Facts) -> Allocations:
    """The calls for device memory in steady steps; steps in which a graph is captured are left out."""
    trace, times = facts.trace, facts.get(steady)
    takes = named(trace, Kind.RUNTIME, lambda name: TAKES.match(name) is not None)
    gives = named(trace, Kind.RUNTIME, lambda name: GIVES.match(name) is not None)
    captured = times.of(trace.ts_ns[named(trace, Kind.RUNTIME, lambda name: CAPTURES.match(name) is not None)])
    rows = np.concatenate((takes, gives))
    step = times.of(trace.ts_ns[rows])
    rows = rows[(step >= 0) & ~np.isin(step, captured)]
    rows = rows[np.lexsort((trace.ts_ns[rows], trace.track[rows]))]
    found = Allocations(rows, np.isin(rows, gives), np.zeros(len(rows), np.uint8), np.full(len(rows), -1, np.int64))
    if found.gives.any():
        _tell(facts, found, _launched(facts, found))
    return found


def _launched(facts: Facts, found: Allocations) -> NDArray[np.int64]:
    """int64[k]: how much work was launched before each call."""
    trace = facts.trace
    launches = np.flatnonzero((trace.call == Call.LAUNCH) | (trace.call == Call.COPY))
    return np.searchsorted(np.sort(trace.ts_ns[launches]), trace.ts_ns[found.row])


def _runs(facts: Facts, found: Allocations, launched: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[r, 2]: first and last (included) of each run of calls that give back, with no launch in between."""
    trace = facts.trace
    joined = found.gives[1:] & found.gives[:-1] & (launched[1:] == launched[:-1])
    joined &= trace.track[found.row[1:]] == trace.track[found.row[:-1]]
    start = np.flatnonzero(found.gives & ~np.concatenate(([False], joined)))
    end = np.flatnonzero(found.gives & ~np.concatenate((joined, [False])))
    return np.stack((start, end), axis=1)


def _tell(facts: Facts, found: Allocations, launched: NDArray[np.int64]) -> None:
    trace, steps, runs = facts.trace, len(facts.get(steady)), _runs(facts, found, launched)
    taken = np.count_nonzero(~found.gives)
    if (
        len(runs) > FEW_RUNS * steps
        and taken > UNCACHED_CALLS * steps
        and 2 * taken < 3 * np.count_nonzero(found.gives) + 2
    ):
        found.reason[:] = Reason.UNCACHED
        return
    operator = facts.get(nesting).nearest(found.row, trace.kind == Kind.OPERATOR)
    emptying = FramesAround.named(facts, lambda name: EMPTIES.search(name) is not None, Kind.PYTHON)
    stacks = bool((trace.kind == Kind.PYTHON).any())
    inside = emptying.around(found.row)
    for number, (low, high) in enumerate(runs.tolist()):
        retried = low > 0 and high + 1 < len(found.row) and operator[low] >= 0 and not inside[low]
        retried = retried and not found.gives[low - 1] and launched[low - 1] == launched[high + 1]
        if retried and operator[low - 1] == operator[low] == operator[high + 1]:
            found.reason[low - 1 : high + 2] = Reason.RETRIED
            found.happening[low - 1 : high + 2] = number
        elif inside[low] if stacks else operator[low] < 0 and high > low:
            found.reason[low : high + 1] = Reason.EMPTIED
            found.happening[low : high + 1] = number
    emptied = found.row[found.reason == Reason.EMPTIED]
    if len(emptied) and facts.get(steady).in_most(trace.ts_ns[emptied]):  # the cache would hold what is taken after
        found.reason[(found.reason == Reason.NEEDED) & ~found.gives] = Reason.EMPTIED
