"""How long the program waits for each batch, and how much of that the devices idle."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.idle import CAUSES, idle
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.overlap import covered_ns
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.loader import loader_events
from torchdiag.timeline.marks import driver, marks
from torchdiag.timeline.result import Cause
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

IN_PROCESS = re.compile(
    r"_SingleProcessDataLoaderIter|torch[/\\]utils[/\\]data[/\\]_utils[/\\]fetch\.py\(\d+\): fetch$"
)
"""What shows that the thread that asks for a batch also makes it."""
QUEUES = re.compile(
    r"(^|[/\\])(multiprocessing[/\\]queues|queue)\.py\(\d+\): get$|torch[/\\]utils[/\\]data[/\\].*: _try_get_data$"
    r"|(^|[/\\])multiprocessing[/\\]connection\.py\(\d+\): (wait|poll|recv_bytes)$"
)
"""Where loaders of one's own wait for their workers."""
HOST_CAUSES = (Cause.DATALOADER, Cause.PYTHON, Cause.FRAMEWORK)


@dataclass(frozen=True, eq=False)
class BatchWaits:
    """The waits for batches that begin in steady steps, by start. One value a wait in each column.

    `row`: the event that covers it, a loader's `__next__` where the trace has any, else a wait for a queue. `step`: the
    steady step it begins in. `exposed_ns`: how long the devices idle for it, a mean over the devices; all of it where
    there are none. `in_process`: whether the batch is made by the thread that waits.
    """

    row: Rows
    step: NDArray[np.int64]
    exposed_ns: NDArray[np.int64]
    in_process: Mask

    def __len__(self) -> int:
        return len(self.row)

    def part(self, chosen: Mask | Rows) -> "BatchWaits":
        """Some of the waits."""
        return BatchWaits(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def batch_waits(facts: Facts) -> BatchWaits:
    """The waits for batches in steady steps."""
    trace, tree, times = facts.trace, facts.get(nesting), facts.get(steady)
    loaders = loader_events(trace)
    rows = tree.tops(loaders) if len(loaders) else _queues(facts)
    rows = times.rows(facts, rows)
    rows = rows[np.argsort(trace.ts_ns[rows], kind="stable")]
    making = np.concatenate(
        [named(trace, kind, lambda name: bool(IN_PROCESS.search(name))) for kind in (Kind.ANNOTATION, Kind.PYTHON)]
    )
    around = tree.outermost(making, tree.mask(rows))
    return BatchWaits(rows, times.of(trace.ts_ns[rows]), exposed_ns(facts, rows), np.isin(rows, around))


def exposed_ns(facts: Facts, rows: Rows) -> NDArray[np.int64]:
    """int64[k]: how long the devices idle for what the host does in each of the rows, a mean over the devices.

    Without devices, all the time of the rows.
    """
    trace, found = facts.trace, facts.get(idle)
    start = trace.ts_ns[rows]
    end = start + trace.dur_ns[rows]
    if not found.devices:
        return end - start
    for_host = np.isin(found.charges.cause, [CAUSES.index(cause) for cause in HOST_CAUSES])
    total = np.zeros(len(rows), np.int64)
    for device in facts.partition.devices:
        mine = for_host & (found.device == device.device)
        total += covered_ns(start, end, found.charges.start_ns[mine], found.charges.end_ns[mine])
    return total // found.devices


def _queues(facts: Facts) -> Rows:
    """The waits for queues of the thread that drives the steps."""
    trace, tree = facts.trace, facts.get(nesting)
    rows = named(trace, Kind.PYTHON, lambda name: bool(QUEUES.search(name)))
    rows = rows[trace.track[rows] == driver(trace, marks(trace))]
    return tree.tops(rows)
