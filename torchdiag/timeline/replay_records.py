"""What the profiler wrote down about waiting: which stream a call waits for, and up to which recorded event."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import links
from torchdiag.timeline.replay_lanes import NONE, Lanes
from torchdiag.trace.absent import MISSING, NO_TEXT
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Times = NDArray[np.int64]
Numbers = NDArray[np.int64]


class Waiter(IntEnum):
    """Who waits."""

    UNKNOWN = 0
    HOST_FOR_STREAM = 1
    HOST_FOR_EVENT = 2
    STREAM_FOR_EVENT = 3


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """One record a call, by call: `call` int64 is the runtime row, `call_ns` its start, `waiter` uint8 of `Waiter`.

    Awaited is what was submitted to `lane` (int64) before `instant_ns`; `waiting` int64 is the lane that waits, -1
    where the host does.
    """

    call: Numbers
    call_ns: Times
    waiter: NDArray[np.uint8]
    lane: Numbers
    instant_ns: Times
    waiting: Numbers


def records_of(trace: Trace, lanes: Lanes) -> Records:
    """The records whose call and awaited stream are known."""
    rows = np.flatnonzero(trace.kind == Kind.SYNC_RECORD)
    waiter = _waiters(trace, rows)
    rows, waiter = rows[waiter != Waiter.UNKNOWN], waiter[waiter != Waiter.UNKNOWN]
    call = links.by_correlation(trace, links.identifiers(trace.args.correlation, rows))
    stream = trace.args.stream.at(rows, MISSING)
    awaited = np.where(waiter == Waiter.HOST_FOR_STREAM, stream, trace.args.wait_on_stream.at(rows, MISSING))
    device = trace.args.device.at(rows, 0)
    lane = _lanes(lanes, device, awaited)
    waiting = np.where(waiter == Waiter.STREAM_FOR_EVENT, _lanes(lanes, device, stream), NONE)
    record = links.by_correlation(trace, np.maximum(trace.args.wait_on_correlation.at(rows, 0), 0))
    instant = np.where(record >= 0, trace.ts_ns[record], trace.ts_ns[call])
    known = np.flatnonzero((call >= 0) & (lane >= 0) & ((waiter != Waiter.STREAM_FOR_EVENT) | (waiting >= 0)))
    known = known[np.argsort(call[known], kind="stable")]
    known = known[np.diff(call[known], prepend=-1) > 0]
    return Records(call[known], trace.ts_ns[call[known]], waiter[known], lane[known], instant[known], waiting[known])


def _waiters(trace: Trace, rows: Numbers) -> NDArray[np.uint8]:
    """The `Waiter` of each record, by its kind."""
    kinds = trace.args.sync_kind.at(rows, NO_TEXT)
    found = np.zeros(len(rows), np.uint8)
    for code in set(kinds[kinds != NO_TEXT].tolist()):
        found[kinds == code] = _waiter(trace.texts[code])
    return found


def _waiter(text: str) -> Waiter:
    lower = text.lower()
    if "wait" in lower:
        return Waiter.STREAM_FOR_EVENT
    if "stream" in lower:
        return Waiter.HOST_FOR_STREAM
    return Waiter.HOST_FOR_EVENT if "event" in lower else Waiter.UNKNOWN


def _lanes(lanes: Lanes, device: Numbers, stream: Numbers) -> Numbers:
    """The lane of each (device, stream), -1 for one without activity."""
    numbers = lanes.numbers()
    places = zip(device.tolist(), stream.tolist(), strict=True)
    return np.fromiter((numbers.get(place, NONE) for place in places), np.int64, len(device))
