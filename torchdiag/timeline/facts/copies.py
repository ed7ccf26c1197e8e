"""Copies between host and device, with what launched them."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.activity import Activities
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace import classify
from torchdiag.trace.vocabulary import Call, Kind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

TO_DEVICE, TO_HOST, OTHER = 1, 2, 0
PAGEABLE, PINNED, UNTOLD = 1, 2, 0

_TO_DEVICE = re.compile(r"[HM](2|to)D|Host[_ ]?To[_ ]?Device|(Host|Pageable|Pinned)\s*->\s*Device", re.IGNORECASE)
_TO_HOST = re.compile(r"D(2|to)[HM]|Device[_ ]?To[_ ]?Host|Device\s*->\s*(Host|Pageable|Pinned)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Copies:
    """Copies between host and device in order of (device, start). One value a copy in each column.

    `activity`: index into the partition's activities. `row`: its row. `direction`: TO_DEVICE or TO_HOST. `memory`:
    PAGEABLE, PINNED or UNTOLD, what the host's side is. `size_bytes`: -1 where not recorded. `call`: row of the launch,
    -1. `operator`: row of the innermost operator around the call, -1. `step`: which steady step it was called in, -1.
    `sync`: row of the call that waits for it within the same operator, -1 for none. `blocks`: whether the host waited:
    by such a call, by a call that copies synchronously, or because the memory is pageable.
    """

    activity: Rows
    row: Rows
    direction: NDArray[np.uint8]
    memory: NDArray[np.uint8]
    size_bytes: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    call: Rows
    operator: Rows
    step: NDArray[np.int64]
    sync: Rows
    blocks: Mask

    def __len__(self) -> int:
        return len(self.row)

    def part(self, chosen: Mask | Rows) -> "Copies":
        """Some of the copies."""
        return Copies(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def copies(facts: Facts) -> Copies:
    """The copies between host and device of a trace."""
    trace, tree = facts.trace, facts.get(nesting)
    activities = facts.partition.activities
    index = np.flatnonzero(trace.kind[activities.row] == Kind.MEMCPY)
    direction = _told(facts, activities.row[index], _direction)
    index, direction = index[direction != OTHER], direction[direction != OTHER]
    found: Activities = activities[index]
    launched = found.launch >= 0
    operator = np.full(len(index), -1, np.int64)
    operator[launched] = tree.nearest(found.launch[launched], trace.kind == Kind.OPERATOR)
    memory = _told(facts, found.row, _memory)
    sync = _following_sync(facts, found.launch, operator)
    synchronous = launched & (trace.call[found.launch] == Call.SYNC)
    begun = np.where(launched, trace.ts_ns[found.launch], found.start_ns)
    return Copies(
        activity=index,
        row=found.row,
        direction=direction,
        memory=memory,
        size_bytes=trace.args.copied_bytes.at(found.row, -1),
        start_ns=found.start_ns,
        end_ns=found.end_ns,
        call=found.launch,
        operator=operator,
        step=facts.get(steady).of(begun),
        sync=np.where(synchronous, found.launch, sync),
        blocks=synchronous | (sync >= 0) | (launched & (memory == PAGEABLE)),
    )


def _told(facts: Facts, rows: Rows, decide: Callable[[str], int]) -> NDArray[np.uint8]:
    """What the name, the direction or the kind of each copy tells, the first that tells anything."""
    trace = facts.trace
    answer = classify.by_name(trace, rows, decide)
    for column in (trace.args.direction, trace.args.copy_kind):
        codes = column.at(rows, -1)
        open_rows = np.flatnonzero((answer == 0) & (codes >= 0))
        for code in set(codes[open_rows].tolist()):
            answer[open_rows[codes[open_rows] == code]] = decide(trace.texts[code])
    return answer


def _direction(text: str) -> int:
    if _TO_DEVICE.search(text):
        return TO_DEVICE
    return TO_HOST if _TO_HOST.search(text) else OTHER


def _memory(text: str) -> int:
    if "ageable" in text:
        return PAGEABLE
    return PINNED if "inned" in text else UNTOLD


def _following_sync(facts: Facts, call: Rows, operator: Rows) -> Rows:
    """int64[k]: the first synchronising call at or after each copy's call in the same operator, -1 for none."""
    trace, tree = facts.trace, facts.get(nesting)
    syncs = np.flatnonzero(trace.call == Call.SYNC)
    found = np.full(len(call), -1, np.int64)
    inside = np.flatnonzero(operator >= 0)
    if not len(syncs) or not len(inside):
        return found
    owner = tree.nearest(syncs, trace.kind == Kind.OPERATOR)
    syncs, owner = syncs[owner >= 0], owner[owner >= 0]
    row = np.concatenate((syncs, call[inside]))
    owner = np.concatenate((owner, operator[inside]))
    waits = np.arange(len(row)) < len(syncs)
    order = np.lexsort((row, waits, trace.ts_ns[row], owner))  # of equal times the copy comes first
    place = np.where(waits[order], np.arange(len(order)), len(order))
    following = np.minimum.accumulate(place[::-1])[::-1]
    following = np.append(order, -1)[following]  # for each in order, the next that waits
    copies_at = order[~waits[order]]
    wait = following[~waits[order]]
    same = (wait >= 0) & (owner[wait] == owner[copies_at])
    found[inside[copies_at[same] - len(syncs)]] = row[wait[same]]
    return found
