"""What ran on the devices in steady steps, with the operators that launched it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.steps import submitted_ns
from torchdiag.trace import classify
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind, Work

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Kernels:
    """Device activities of the steady steps in order of (device, start). One value each in every column.

    `activity`: index into the partition's activities. `row`: its row. `call`: row of the launch, -1. `operator`: row of
    the innermost operator around the launch, -1. `step`: the steady step it was launched in. `work`: `vocabulary.Work`.
    """

    trace: Trace
    activity: Rows
    row: Rows
    call: Rows
    operator: Rows
    step: NDArray[np.int64]
    work: NDArray[np.uint8]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    stream: NDArray[np.int64]
    device: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def dur_ns(self) -> NDArray[np.int64]:
        """int64[k]: how long each ran."""
        return self.end_ns - self.start_ns

    def part(self, chosen: Mask | Rows) -> "Kernels":
        """Some of them."""
        columns = list(self.__dataclass_fields__)[1:]
        return Kernels(self.trace, *(getattr(self, name)[chosen] for name in columns))

    def named(self, accepts: Callable[[str], bool]) -> Mask:
        """bool[k]: those whose name is accepted; `accepts` runs once a distinct name."""
        return classify.by_name(self.trace, self.row, accepts) != 0

    def compute(self) -> "Kernels":
        """The kernels that compute: no copies, no fills by the runtime, no communication."""
        return self.part((self.work == Work.COMPUTE) & (self.trace.kind[self.row] == Kind.KERNEL))


def kernels(facts: Facts) -> Kernels:
    """Everything that ran on a device in steady steps, copies included."""
    trace, tree = facts.trace, facts.get(nesting)
    activities = facts.partition.activities
    step = facts.get(steady).of(submitted_ns(trace, activities))
    index = np.flatnonzero(step >= 0)
    found = activities[index]
    launched = found.launch >= 0
    operator = np.full(len(index), -1, np.int64)
    operator[launched] = tree.nearest(found.launch[launched], trace.kind == Kind.OPERATOR)
    legacy = launched & (trace.kind[found.launch] == Kind.OPERATOR)  # before Kineto the operator stands for the launch
    operator[legacy] = found.launch[legacy]
    return Kernels(
        trace, index, found.row, found.launch, operator, step[index], found.work,
        found.start_ns, found.end_ns, found.stream, found.device,
    )  # fmt: skip
