"""Where a loader begins anew after it had already given batches."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.loader import loader_events
from torchdiag.trace.vocabulary import Call, Kind

Rows = NDArray[np.int64]

BEGINS = re.compile(r"torch[/\\]utils[/\\]data[/\\]dataloader\.py\(\d+\): __iter__$")
STARTS = re.compile(r"(^|[/\\])multiprocessing[/\\]popen_\w+\.py\(\d+\): (__init__|_launch)$")
MULTIPLE = "_MultiProcessingDataLoaderIter"
LATE = 10
"""A first batch takes that many times the usual wait."""
LATE_SHARE = 0.1
"""It also takes this share of a step."""


@dataclass(frozen=True, eq=False)
class EpochStarts:
    """One value a start in each column.

    `row`: the loader's `__iter__`; without stacks the first `__next__`, if it is late. `first`: that first `__next__`.
    `restarted`: whether processes are seen to be started.
    """

    row: Rows
    first: Rows
    restarted: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.row)


def epoch_starts(facts: Facts) -> EpochStarts:
    """The starts of epochs in steady steps, all but the first of the trace."""
    trace, tree, times = facts.trace, facts.get(nesting), facts.get(steady)
    nexts = tree.tops(loader_events(trace))
    nexts = nexts[np.lexsort((trace.ts_ns[nexts], trace.track[nexts]))]
    kept: list[tuple[int, int]]
    begins = named(trace, Kind.PYTHON, lambda name: bool(BEGINS.search(name)))
    if len(begins):
        starts = named(trace, Kind.PYTHON, lambda name: bool(STARTS.search(name)))
        around = tree.nearest(starts, tree.mask(begins))
        begins = times.rows(facts, np.intersect1d(begins, around))
        found = [(int(row), *_around(facts, nexts, int(row))) for row in begins.tolist()]
        kept = [(row, after) for row, before, after in found if before >= 0 and after >= 0]
    elif np.any(trace.kind == Kind.PYTHON):
        kept = []
    else:
        kept = [(int(row), int(row)) for row in _late(facts, nexts).tolist()]
    row = np.array([row for row, _ in kept], np.int64)
    first = np.array([first for _, first in kept], np.int64)
    return EpochStarts(row, first, np.full(len(row), bool(len(begins))))


def _around(facts: Facts, nexts: Rows, row: int) -> tuple[int, int]:
    """The last batch before a row and the first after it on its thread, -1 for none."""
    trace = facts.trace
    mine = nexts[trace.track[nexts] == trace.track[row]]
    place = int(np.count_nonzero(trace.ts_ns[mine] < trace.ts_ns[row]))
    return (int(mine[place - 1]) if place else -1, int(mine[place]) if place < len(mine) else -1)


def _late(facts: Facts, nexts: Rows) -> Rows:
    """Batches of worker processes that are very late, with nothing done since the loader last answered."""
    trace, times = facts.trace, facts.get(steady)
    workers = np.isin(nexts, named(trace, Kind.ANNOTATION, lambda name: MULTIPLE in name))
    if not workers.all() or len(nexts) < LATE:
        return nexts[:0]
    before, after = nexts[:-1], nexts[1:]
    usual = float(np.median(trace.dur_ns[nexts]))
    late = (trace.dur_ns[after] >= LATE * usual) & (trace.dur_ns[after] >= LATE_SHARE * times.step_ns)
    late &= trace.track[before] == trace.track[after]
    issued = np.sort(trace.ts_ns[np.isin(trace.call, (Call.LAUNCH, Call.COPY)) | (trace.kind == Kind.OPERATOR)])
    ended = trace.ts_ns[before] + trace.dur_ns[before]
    late &= np.searchsorted(issued, trace.ts_ns[after]) == np.searchsorted(issued, ended)
    return times.rows(facts, after[late])
