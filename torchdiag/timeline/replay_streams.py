"""What a stream's work waits for besides its launch: the work before it, and events of other streams."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.distinct import among
from torchdiag.timeline.replay_lanes import NONE, Lanes, Order
from torchdiag.timeline.replay_records import Records, Waiter
from torchdiag.trace import classify
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Times = NDArray[np.int64]
Numbers = NDArray[np.int64]

OVERLAP_NS = 13_000
"""Activities of one stream may overlap by this much and still follow one another; beyond it they run side by side."""

USUAL_GAP_NS = 1_000
"""Between two activities of a stream that has work waiting, where a trace has none to measure."""

LONGEST_GAP_NS = 5_000
WAITED_NS = 10_000
"""Work that begins this much later than it could have, waited for something else."""

MOST_LANES = 64
"""Streams that are looked at for work after an unseen graph, the busiest ones: bounds memory."""

CROWDED_NS = 100_000
"""Work that begins this much later than it could have, while other work runs, may have had no room."""

NEAR_NS = 20_000
"""Work that ended this shortly before on another stream is what was waited for."""

TRIED = 8
"""How many of the last pieces of work to end are looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Follows:
    """`activity` begins `least_ns` after `source` has ended, or sooner after it has begun (`begun`): int64 and bool."""

    activity: Numbers
    source: Numbers
    least_ns: Times
    begun: NDArray[np.bool_]


def in_order(lanes: Lanes, latency_ns: int) -> Follows:
    """Each activity after the ones before it in its lane; `latency_ns` is what a launch takes to reach the device."""
    numbers = np.flatnonzero(lanes.before != NONE)
    before = lanes.before[numbers]
    farthest = lanes.reach[before]
    limit = lanes.start_ns[numbers] + OVERLAP_NS
    gap = _usual_gap(lanes, numbers, latency_ns)
    after = lanes.end_ns[before] <= limit
    also = (farthest != before) & (lanes.end_ns[farthest] <= limit)
    activity = np.concatenate((numbers, numbers[after], numbers[also]))
    source = np.concatenate((before, before[after], farthest[also]))
    least = np.where(np.arange(len(activity)) < len(numbers), 0, gap)
    return Follows(activity, source, least, np.arange(len(activity)) < len(numbers))


def across(trace: Trace, lanes: Lanes, records: Records, latency_ns: int) -> Follows:
    """Each activity after the work of other streams that it waited for.

    The trace tells so in records; else in calls that let a stream wait for the event recorded last on their thread;
    else work that began late, just when other work had ended, has waited for that.
    """
    pairs = [
        _recorded(lanes, records),
        _by_calls(trace, lanes, records),
        _by_times(lanes, latency_ns),
        _after_unseen(lanes),
    ]
    activity = np.concatenate([pair[0] for pair in pairs])
    source = np.concatenate([pair[1] for pair in pairs])
    fits = lanes.end_ns[source] <= lanes.start_ns[activity] + OVERLAP_NS if len(source) else np.empty(0, np.bool_)
    crowded = _for_room(lanes, activity[fits], latency_ns)
    activity, source = np.append(activity[fits], crowded[0]), np.append(source[fits], crowded[1])
    return Follows(activity, source, np.full(len(source), USUAL_GAP_NS), np.zeros(len(source), np.bool_))


def _usual_gap(lanes: Lanes, numbers: Numbers, latency_ns: int) -> int:
    """The median gap before work that had long been launched when the work before it ended."""
    before_end = lanes.end_ns[lanes.before[numbers]]
    waiting = (lanes.launch[numbers] >= 0) & (lanes.submitted_ns[numbers] + 2 * latency_ns < before_end)
    gaps = (lanes.start_ns[numbers] - before_end)[waiting]
    gaps = gaps[(gaps >= 0) & (gaps <= 4 * LONGEST_GAP_NS)]
    return min(int(np.quantile(gaps, 0.5)), LONGEST_GAP_NS) if len(gaps) else USUAL_GAP_NS


def _recorded(lanes: Lanes, records: Records) -> tuple[Numbers, Numbers]:
    """Pairs that records tell: the first work of the waiting stream after the call, and the last before the event."""
    here = np.flatnonzero(records.waiter == Waiter.STREAM_FOR_EVENT)
    source = lanes.order.last_before(records.lane[here], records.instant_ns[here])
    call = records.call_ns[here]
    activity = _next(lanes, records.waiting[here], call)
    fits = (source != NONE) & (activity != NONE)
    return activity[fits], source[fits]


def _by_calls(trace: Trace, lanes: Lanes, records: Records) -> tuple[Numbers, Numbers]:
    """Pairs that the order of calls on a thread suggests, for calls without a record."""
    none = np.empty(0, np.int64)
    linked = np.flatnonzero((lanes.launch >= 0) & (lanes.row != NONE))
    rows = np.flatnonzero(trace.kind == Kind.RUNTIME)
    kind = classify.by_name(trace, rows, lambda name: 2 * ("StreamWaitEvent" in name) + ("EventRecord" in name))
    rows, kind = rows[kind > 0], kind[kind > 0]
    if not len(linked) or not len(rows):
        return none, none
    order = np.lexsort((trace.ts_ns[rows], trace.track[rows]))
    rows, kind = rows[order], kind[order]
    recording = rows[kind == 1]
    waiting = rows[(kind == 2) & ~among(rows, records.call)]
    linked = linked[np.lexsort((lanes.submitted_ns[linked], trace.track[lanes.launch[linked]]))]
    threads = Order.of(trace.track[lanes.launch[linked]].astype(np.int64), lanes.submitted_ns[linked])
    recorded = Order.of(trace.track[recording].astype(np.int64), trace.ts_ns[recording])
    track, instant = trace.track[waiting].astype(np.int64), trace.ts_ns[waiting]
    event = recorded.last_before(track, instant)
    waiting, track, instant, event = (
        waiting[event != NONE],
        track[event != NONE],
        instant[event != NONE],
        event[event != NONE],
    )
    source = threads.last_before(track, trace.ts_ns[recording[event]])
    following = threads.last_before(track, instant) + 1
    known = np.minimum(following, len(linked) - 1)
    fits = (source != NONE) & (following < len(linked)) & (threads.group[known] == track)
    activity, source = linked[known[fits]], linked[source[fits]]
    other = lanes.lane[activity] != lanes.lane[source]
    return activity[other], source[other]


def _by_times(lanes: Lanes, latency_ns: int) -> tuple[Numbers, Numbers]:
    """Pairs that the times suggest. A kernel that waits for room begins while the last blocks before it still run."""
    none = np.empty(0, np.int64)
    if not len(lanes):
        return none, none
    late = np.flatnonzero((_delay_ns(lanes, latency_ns) > WAITED_NS) & (lanes.launch >= 0))
    by_end, start = np.argsort(lanes.end_ns, kind="stable"), lanes.start_ns[late]
    place = np.searchsorted(lanes.end_ns[by_end], start + OVERLAP_NS, side="right") - 1
    found = np.full(len(late), NONE)
    for back in range(TRIED):
        source = by_end[np.maximum(place - back, 0)]
        fits = (found == NONE) & (place >= back) & (lanes.row[source] != NONE)
        fits &= (lanes.lane[source] != lanes.lane[late]) & (lanes.device[source] == lanes.device[late])
        fits &= (lanes.start_ns[source] < lanes.start_ns[late]) & (
            lanes.submitted_ns[source] <= lanes.submitted_ns[late]
        )
        fits &= start - lanes.end_ns[source] <= NEAR_NS
        found[fits] = source[fits]
    return late[found != NONE], found[found != NONE]


def _for_room(lanes: Lanes, known: Numbers, latency_ns: int) -> tuple[Numbers, Numbers]:
    """Pairs of work that began very late for no `known` reason, and work of another stream that left no room for it.

    That is still running, on the last of its blocks: of several, the one that ends first.
    """
    if not len(lanes):
        return known, known
    late = np.flatnonzero((_delay_ns(lanes, latency_ns) > CROWDED_NS) & (lanes.launch >= 0))
    late = late[~among(late, known)]
    started = Order.of(lanes.lane, lanes.start_ns)
    found = np.full(len(late), NONE)
    end = np.full(len(late), np.iinfo(np.int64).max)
    for lane in np.argsort(-np.bincount(lanes.lane), kind="stable")[:MOST_LANES].tolist():
        running = started.last_before(np.full(len(late), lane), lanes.start_ns[late])
        running = np.where(running == NONE, NONE, lanes.reach[running])
        fits = (running != NONE) & (lanes.lane[late] != lane) & (lanes.device[running] == lanes.device[late])
        fits &= (lanes.end_ns[running] > lanes.start_ns[late]) & (lanes.end_ns[running] < end)
        fits &= (lanes.row[running] != NONE) & (lanes.submitted_ns[running] <= lanes.submitted_ns[late])
        found[fits], end[fits] = running[fits], lanes.end_ns[running[fits]]
    return late[found != NONE], found[found != NONE]


def _delay_ns(lanes: Lanes, latency_ns: int) -> Times:
    """int64[n]: how much later each activity began than its launch and its stream explain."""
    previous = np.where(lanes.before == NONE, lanes.submitted_ns, lanes.end_ns[lanes.reach[lanes.before]])
    return lanes.start_ns - np.maximum(previous, lanes.submitted_ns + latency_ns)


def _after_unseen(lanes: Lanes) -> tuple[Numbers, Numbers]:
    """Pairs of a graph replay that was not recorded and the work that every stream of its device was given next."""
    unseen = np.flatnonzero(lanes.row == NONE)
    pairs: list[tuple[Numbers, Numbers]] = [(unseen[:0], unseen[:0])]
    for lane in np.argsort(-np.bincount(lanes.lane), kind="stable")[:MOST_LANES].tolist():
        activity = _next(lanes, np.full(len(unseen), lane), lanes.submitted_ns[unseen] + 1)
        fits = (activity != NONE) & (lanes.row[activity] != NONE)
        pairs.append((activity[fits], unseen[fits]))
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


def _next(lanes: Lanes, lane: Numbers, instant: Times) -> Numbers:
    """The first work of each lane that was submitted at or after each instant, -1 for none."""
    if not len(lanes):
        return np.full(len(lane), NONE)
    last = lanes.order.last_before(lane, instant)
    first_of_lane = np.flatnonzero(lanes.before == NONE)
    following = np.where(last == NONE, first_of_lane[np.maximum(lane, 0)], last + 1)
    known = np.minimum(following, len(lanes) - 1)
    return np.where((following < len(lanes)) & (lanes.lane[known] == lane), known, NONE)
