"""One code a row for what an event is, decided once a distinct category, process or name.

The decisions are the tables of `vocabulary.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import lookup
from torchdiag.trace.absent import MISSING, NO_TEXT
from torchdiag.trace.faults import COMPLETE, complete, faulty
from torchdiag.trace.vocabulary import (
    CALLS,
    CATEGORY_KINDS,
    COMMUNICATION_WORDS,
    FUSED_PREFIX,
    HOST_COPY,
    LOCAL_WORDS,
    NAME_KINDS,
    PEER_COPY,
    PROCESS_KINDS,
    Call,
    Kind,
    Work,
)

if TYPE_CHECKING:
    from torchdiag.trace.columns import Trace


def kinds(trace: Trace) -> NDArray[np.uint8]:
    """uint8[n]: the `Kind` of each row; OTHER for what is no complete event or has times that cannot be meant."""
    by_category = np.zeros(len(trace.categories) + 1, np.uint8)  # the first is for NO_TEXT, which is -1
    by_category[1:] = [CATEGORY_KINDS.get(category, Kind.OTHER) for category in trace.categories]
    times = trace.ts_ns, trace.dur_ns
    kind = lookup.kinds(trace.category, trace.phase, times, by_category, COMPLETE)
    for group, table, base in groups_told_by_name(trace):
        rows = complete(trace, group)
        rows = rows[trace.dur_ns[rows] >= 0]
        kind[rows] = by_name(trace, rows, lambda name, table=table, base=base: first_match(table, name, base))
    kind[faulty(trace)] = Kind.OTHER
    return kind


def calls(trace: Trace) -> NDArray[np.uint8]:
    """uint8[n]: the `Call` of each row, NONE for what is no runtime call."""
    call = np.zeros(len(trace), np.uint8)
    rows = np.flatnonzero(trace.kind == Kind.RUNTIME)
    call[rows] = by_name(trace, rows, call_of)
    return call


def works(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """uint8[k]: the `Work` of the device activities at `rows` (ascending)."""
    kind = trace.kind[rows]
    work = np.full(len(rows), Work.MEMORY, np.uint8)
    kernels = np.flatnonzero(kind == Kind.KERNEL)
    work[kernels] = by_name(trace, rows[kernels], kernel_work)
    copies = np.flatnonzero(kind == Kind.MEMCPY)
    work[copies] = copy_works(trace, rows[copies])
    return work


def copy_works(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """uint8[k]: the `Work` of the copies at `rows`, by name and by the `direction`, `fromDevice` and `toDevice`."""
    told = by_name(trace, rows, copy_work)
    direction = trace.args.direction.at(rows, NO_TEXT)
    for code in set(direction[direction != NO_TEXT].tolist()):
        here = direction == code
        told[here] = np.maximum(told[here], copy_work(trace.texts[code]))
    source = trace.args.source_device.at(rows, MISSING)
    target = trace.args.target_device.at(rows, MISSING)
    between = (source != MISSING) & (target != MISSING) & (source != target)
    return np.select(
        [told == PEER, told == HOST, between],
        [np.uint8(Work.COMMUNICATION), np.uint8(Work.TRANSFER), np.uint8(Work.COMMUNICATION)],
        np.uint8(Work.MEMORY),
    )


UNTOLD, HOST, PEER = 0, 1, 2


def copy_work(text: str) -> int:
    """What a copy's name or direction tells: PEER, HOST or UNTOLD; the greater of two tellings counts."""
    if PEER_COPY.search(text):
        return PEER
    return HOST if HOST_COPY.search(text) else UNTOLD


def kernel_work(name: str) -> int:
    """The `Work` of a kernel by its name."""
    if name.startswith(FUSED_PREFIX):
        return Work.COMPUTE
    lower = name.lower()
    for word in LOCAL_WORDS:
        lower = lower.replace(word, "")
    return Work.COMMUNICATION if any(word in lower for word in COMMUNICATION_WORDS) else Work.COMPUTE


def call_of(name: str) -> int:
    """The `Call` of a runtime call by its name."""
    return next((call for pattern, call in CALLS if pattern.search(name)), Call.OTHER)


def first_match(table: tuple[tuple[re.Pattern[str], Kind], ...], name: str, otherwise: Kind) -> Kind:
    """The kind of the first pattern that matches from the start of the name."""
    return next((kind for pattern, kind in table if pattern.match(name)), otherwise)


def by_name(trace: Trace, rows: NDArray[np.int64], decide: Callable[[str], int]) -> NDArray[np.uint8]:
    """uint8[k]: `decide` of the name of each of `rows`, called once a distinct name; a row without a name is ""."""
    codes = trace.name[rows]
    present = np.zeros(len(trace.names) + 1, np.bool_)  # the last is for NO_TEXT, which is -1
    present[codes] = True
    table = np.zeros(len(present), np.uint8)
    for code in np.flatnonzero(present).tolist():
        table[code] = decide(trace.names[code] if code < len(trace.names) else "")
    return table[codes]


def groups_told_by_name(
    trace: Trace,
) -> Iterator[tuple[NDArray[np.int64], tuple[tuple[re.Pattern[str], Kind], ...], Kind]]:
    """Rows whose category or process leaves the kind to the name: rows, the table, the kind when no name matches."""
    for code, category in enumerate(trace.categories):
        if category in NAME_KINDS:
            kind = CATEGORY_KINDS.get(category, Kind.OTHER)
            yield np.flatnonzero(trace.category == code), NAME_KINDS[category], kind
    bare = np.flatnonzero((trace.category == NO_TEXT) & (trace.phase == COMPLETE))
    if not len(bare):
        return
    processes = process_names(trace)
    for process in PROCESS_KINDS:
        tracks = np.fromiter((name == process for name in processes), np.bool_, len(processes))
        if tracks.any():
            yield bare[tracks[trace.track[bare]]], NAME_KINDS.get(process, ()), PROCESS_KINDS[process]


def process_names(trace: Trace) -> list[str]:
    """The name of each track's process: what a `process_name` row says of its pid, else the pid itself."""
    told: dict[int | str | None, str] = {}
    rows = np.flatnonzero(trace.phase == ord("M"))
    labels = trace.args.metadata_name.at(rows, NO_TEXT)
    for row, label in zip(rows[labels != NO_TEXT].tolist(), labels[labels != NO_TEXT].tolist(), strict=True):
        name = int(trace.name[row])
        if name != NO_TEXT and trace.names[name] == "process_name":
            told[trace.tracks.pids[trace.track[row]]] = trace.texts[label]
    return [told.get(pid, str(pid)) for pid in trace.tracks.pids]
