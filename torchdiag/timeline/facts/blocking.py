"""Host calls that wait for the device, with what they wait for."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.copies import copies
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Call, Kind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Blocking:
    """Calls inside steady steps that make a host thread wait for a device, by row. One value a wait in each column.

    `row`: the call: one that synchronises, or a copy that waits for pageable memory. `copy`: index into `copies(facts)`
    of the copy that it waits for, -1 for a bare synchronisation. A copy and the call that waits for it are one wait,
    told by that call; `with_copy` is the row of the copy's own call then, else `row`. `operator`: innermost operator
    around, -1. `step`: which steady step it begins in. `waited_ns`: time of the call (and of the copy's call).
    """

    row: Rows
    with_copy: Rows
    copy: Rows
    operator: Rows
    step: NDArray[np.int64]
    waited_ns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.row)

    def part(self, chosen: Mask | Rows) -> "Blocking":
        """Some of the waits."""
        return Blocking(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    @property
    def calls(self) -> Rows:
        """The rows of all calls that wait, ascending and distinct: what a what-if takes the waiting from."""
        return np.union1d(self.row, self.with_copy)

    def inside(self, facts: Facts, tops: Rows) -> Mask:
        """bool[k]: which of the waits happen inside one of the host events `tops`."""
        return facts.get(nesting).below(self.row, tops)


def blocking(facts: Facts) -> Blocking:
    """The waits of the steady steps. What a profiler waits for at its own start and stop lies outside of steps."""
    trace, tree, table = facts.trace, facts.get(nesting), facts.get(copies)
    waiting = np.flatnonzero(table.blocks)
    by_copy = np.where(table.sync[waiting] >= 0, table.sync[waiting], table.call[waiting])
    copy_of = np.full(len(trace), -1, np.int64)
    copy_of[by_copy] = waiting
    rows = np.union1d(np.flatnonzero(trace.call == Call.SYNC), by_copy).astype(np.int64)
    step = facts.get(steady).of(trace.ts_ns[rows])
    rows, step = rows[step >= 0], step[step >= 0]
    copy = copy_of[rows]
    with_copy = np.where(copy >= 0, table.call[copy], rows) if len(table) else rows
    own = trace.dur_ns[rows]
    return Blocking(
        row=rows,
        with_copy=with_copy,
        copy=copy,
        operator=tree.nearest(rows, trace.kind == Kind.OPERATOR),
        step=step,
        waited_ns=own + np.where(with_copy != rows, trace.dur_ns[with_copy], 0),
    )
