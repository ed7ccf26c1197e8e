"""Which one rule may accuse each copy between host and device: the most specific whose signature it bears."""

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.distinct import distinct
from torchdiag.timeline.facts.batch_copies import BatchCopies, batch_copies
from torchdiag.timeline.facts.copies import PAGEABLE, PINNED, TO_DEVICE, TO_HOST, Copies, copies
from torchdiag.timeline.facts.created_copies import CreatedCopies, created_copies
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.offloaded import offloaded
from torchdiag.timeline.facts.overlap import covered_ns
from torchdiag.timeline.facts.saving import saving
from torchdiag.timeline.facts.steady import MOSTLY, steady
from torchdiag.timeline.facts.whereabouts import whereabouts

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

TINY_BYTES = 1 << 10
SMALL_BYTES = 64 << 10
LARGE_BYTES = 1 << 20
MANY = 20
"""More small copies than this in a step are many."""
SEEN_AGAIN = 3
"""Without steps, a size that is copied less often is taken for setting up: the weights of a model, one table."""
HIDDEN = 0.5
"""A copy that computing kernels accompany for this share of its time is overlapped."""


class Reason(IntEnum):
    """Why a copy is accused, NONE for those that are not; the least number that fits is its reason."""

    NONE = 0
    OFFLOAD = 1
    CREATED = 2
    CONSTANT = 3
    REPEATED = 4
    MANY_SMALL = 5
    PAGEABLE = 6
    PINNED_BLOCKING = 7
    NOT_OVERLAPPED = 8
    LARGE_OUTPUT = 9


@dataclass(frozen=True, eq=False)
class CopyReasons:
    """The copies of the steady steps that have a known call, with the one reason to accuse each.

    `reason` uint8[k] of `Reason`. `top` int64[k]: the outermost operator of each copy, -1. `factory` int64[k]: the
    operator that made the tensor on the host just before, -1.
    """

    copies: Copies
    reason: NDArray[np.uint8]
    top: Rows
    factory: Rows

    def __len__(self) -> int:
        return len(self.copies)

    def part(self, chosen: Mask | Rows) -> "CopyReasons":
        """Some of them."""
        return CopyReasons(self.copies.part(chosen), self.reason[chosen], self.top[chosen], self.factory[chosen])

    def of(self, reason: Reason) -> "CopyReasons":
        """Those that are accused for one reason."""
        return self.part(self.reason == reason)


def copy_reasons(facts: Facts) -> CopyReasons:
    """The reason to accuse each copy between host and device."""
    table = facts.get(copies)
    table = table.part((table.step >= 0) & (table.call >= 0))
    inward = np.flatnonzero(table.direction == TO_DEVICE)  # the copies of `batch_copies`, in its order
    made, batch = facts.get(created_copies), facts.get(batch_copies)
    reason = np.zeros(len(table), np.uint8)
    moved = facts.get(offloaded)[table.row]
    reason[inward] = _inward(facts, batch, made, moved[inward])
    outward = (table.direction == TO_HOST) & (table.size_bytes >= LARGE_BYTES) & _again(facts, table)
    reason[outward & moved] = Reason.OFFLOAD
    reason[outward & ~moved & ~facts.get(saving).around(table.call)] = Reason.LARGE_OUTPUT
    top, factory = np.full(len(table), -1, np.int64), np.full(len(table), -1, np.int64)
    top[inward], factory[inward] = made.top, made.factory
    return CopyReasons(table, reason, top, factory)


def _inward(facts: Facts, batch: BatchCopies, made: CreatedCopies, moved: Mask) -> NDArray[np.uint8]:
    table = batch.copies
    size, constant = table.size_bytes, table.blocks & made.from_python & ~batch.batch
    if facts.get(steady).whole:  # what happens once or twice may be setting up
        often = np.bincount(batch.place, minlength=1)[batch.place] >= SEEN_AGAIN
        constant, created = constant & often, (made.factory >= 0) & often
    else:
        created = made.factory >= 0
    fits = [
        (Reason.OFFLOAD, moved),
        (Reason.CREATED, created),
        (Reason.CONSTANT, constant & (size >= 0) & (size <= TINY_BYTES)),
        (Reason.REPEATED, _repeated(facts, batch)),
    ]
    reason = np.select([fit for _, fit in fits], [np.uint8(code) for code, _ in fits], np.uint8(Reason.NONE))
    small = (reason == Reason.NONE) & (size >= 0) & (size < SMALL_BYTES) & (made.top >= 0)
    reason[small & _many(facts, table, small)] = Reason.MANY_SMALL
    rest, large = (reason == Reason.NONE) & _again(facts, table), size >= LARGE_BYTES
    reason[rest & large & (table.memory == PAGEABLE)] = Reason.PAGEABLE
    reason[rest & (table.memory == PINNED) & (table.sync >= 0)] = Reason.PINNED_BLOCKING
    exposed = rest & large & ~table.blocks & (table.memory != PAGEABLE)
    exposed[exposed] = _exposed(facts, table.part(exposed))
    reason[exposed] = Reason.NOT_OVERLAPPED
    return reason


def _repeated(facts: Facts, batch: BatchCopies) -> Mask:
    """bool[k]: copies of a line that brings no batch and copies as many bytes again and again.

    A function that also copies to the host brings back what it has made of that: no constant.
    """
    table, times = batch.copies, facts.get(steady)
    away = facts.get(copies)
    away = away.call[(away.direction == TO_HOST) & (away.step >= 0) & (away.call >= 0)]
    returning = {(where.file, where.function) for where in facts.get(whereabouts).of(away)}
    found = np.zeros(len(table), np.bool_)
    for index, where in enumerate(batch.places):
        here = np.flatnonzero((batch.place == index) & ~batch.batch & batch.consumed)
        computing = batch.loader or where.module is not None
        if where.file is None or (where.file, where.function) in returning or not len(here) or not computing:
            continue
        if np.any(table.size_bytes[here] < 0):
            continue
        if len(times) > 1:
            found[here] = _same_each_step(table.part(here), len(times))
        elif where.module is not None:
            found[here] = len(here) >= SEEN_AGAIN and len(distinct(table.size_bytes[here])) == 1
    return found


def _same_each_step(table: Copies, steps: int) -> bool:
    """Whether (nearly) every step copies the same sizes."""
    order = np.lexsort((table.size_bytes, table.step))
    borders = np.searchsorted(table.step[order], np.arange(1, steps))
    sizes = [tuple(part.tolist()) for part in np.split(table.size_bytes[order], borders)]
    return max(count for told, count in Counter(sizes).items() if told) >= max(MOSTLY * steps, 2)


def _again(facts: Facts, table: Copies) -> Mask:
    """bool[k]: copies that may well happen in every step: without steps, only those of a size that comes again."""
    if not facts.get(steady).whole:
        return np.ones(len(table), np.bool_)
    _, number, often = np.unique(
        table.size_bytes * 2 + (table.direction == TO_HOST), return_inverse=True, return_counts=True
    )
    return often[number] >= SEEN_AGAIN


def _many(facts: Facts, table: Copies, small: Mask) -> bool:
    """Whether most steps copy many small tensors."""
    often = np.bincount(table.step[small], minlength=len(facts.get(steady)))
    return bool(np.count_nonzero(often > MANY) >= MOSTLY * len(often))


def _exposed(facts: Facts, table: Copies) -> Mask:
    """bool[k]: copies on a stream that also computes, while hardly anything computes."""
    computing = facts.get(kernels).compute()
    found = np.zeros(len(table), np.bool_)
    activities = facts.partition.activities
    device, stream = activities.device[table.activity], activities.stream[table.activity]
    for one in distinct(device).tolist():
        mine, here = np.flatnonzero(device == one), computing.device == one
        covered = covered_ns(table.start_ns[mine], table.end_ns[mine], computing.start_ns[here], computing.end_ns[here])
        alone = covered < HIDDEN * (table.end_ns[mine] - table.start_ns[mine])
        found[mine] = alone & np.isin(stream[mine], computing.stream[here])
    return found
