"""Calls that wait for the device, and for which of its activities each waits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.distinct import firsts
from torchdiag.timeline.replay_lanes import NONE, Lanes, Order
from torchdiag.timeline.replay_records import Records, Waiter
from torchdiag.timeline.replay_scope import Scope
from torchdiag.trace import classify
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Call, Kind

Times = NDArray[np.int64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

SKEW_NS = 10_000
"""How much the device's clock may run ahead of the host's: work that ends this much after a call did not outlast it."""

LONG_SKEW_NS = 200_000
"""Clocks that were fitted to one another may differ by up to this much more, ..."""

SKEW_PART = 20
"""... but for no more than one part in this of the time that the call lasts."""

PLAIN_NS = 20_000
"""A call that lasts longer than this waited for something."""

NEAR_NS = 20_000
"""Work that ends this shortly before a long call does is what the call waited for."""

MOST_LANES = 64
"""Streams a device-wide wait looks at, the busiest ones: bounds memory."""

BLOCKING_LAUNCHES = 0.9
"""Share of launch calls that return after their work from which on launches are taken to block, all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Calls that wait, or would if the host came earlier: int64[c] each, in order of (track, start).

    `row`, `track`, `start_ns`, `end_ns`; `cost_ns` is what the call takes when nothing is to be waited for, `waited`
    bool whether it was seen to wait for work that is known, `submits` bool whether it launches work. `edge_call`
    (index of the call) and `edge_activity` (index into the lanes) pair calls with the work they wait for,
    `edge_least_ns` is how soon after that work a call returns.
    """

    row: Numbers
    track: Numbers
    start_ns: Times
    end_ns: Times
    cost_ns: Times
    waited: Flags
    submits: Flags
    edge_call: Numbers
    edge_activity: Numbers
    edge_least_ns: Times

    def __len__(self) -> int:
        return len(self.row)


def calls_of(trace: Trace, lanes: Lanes, scope: Scope, tracks: Flags, records: Records) -> Calls:
    """The waiting calls of the threads (bool by track) that are replayed."""
    asked = _Asked(trace, lanes, scope, tracks)
    own = asked.own()
    found = [own]
    told = asked.recorded(records)
    for style in (asked.streams(), asked.events()):
        found.append(asked.one_lane(style, told))
    found.append(asked.whole_device(np.concatenate((asked.devices(), asked.freeing()))))
    call = np.concatenate([part[0] for part in found])
    activity = np.concatenate([part[1] for part in found])
    order = np.argsort(call, kind="stable")
    return _measured(asked, own[0], call[order], activity[order])


Pairs = tuple[Numbers, Numbers]
"""Calls (index into those asked about) and the activity each waits for (index into the lanes)."""


class _Asked:
    """The calls in question, and the ways to find what each waits for."""

    def __init__(self, trace: Trace, lanes: Lanes, scope: Scope, tracks: Flags) -> None:
        self.trace, self.lanes = trace, lanes
        wanted = np.zeros(256, np.bool_)
        wanted[[Call.SYNC, Call.COPY, Call.LAUNCH, Call.ALLOCATION]] = True
        rows = np.flatnonzero(wanted[trace.call])
        rows = rows[tracks[trace.track[rows]]]
        start = trace.ts_ns[rows]
        end = start + trace.dur_ns[rows]
        inside = (start < scope.end_ns) & (end > scope.start_ns)
        rows, start, end = rows[inside], start[inside], end[inside]
        order = np.lexsort((end, start, trace.track[rows]))
        self.row, self.start_ns, self.end_ns = rows[order], start[order], end[order]
        self.track = trace.track[self.row].astype(np.int64)
        skew = np.minimum((self.end_ns - self.start_ns) // SKEW_PART, LONG_SKEW_NS) + SKEW_NS
        self.limit_ns = self.end_ns + skew
        self.call = trace.call[self.row]
        self.style = classify.by_name(trace, self.row, _style)
        self.by_end = np.argsort(lanes.end_ns, kind="stable")
        linked = np.flatnonzero((lanes.launch >= 0) & (lanes.row != NONE))
        linked = linked[np.lexsort((lanes.submitted_ns[linked], trace.track[lanes.launch[linked]]))]
        self.launched = linked
        self.threads = Order.of(trace.track[lanes.launch[linked]].astype(np.int64), lanes.submitted_ns[linked])

    def own(self) -> Pairs:
        """Calls that return after the work they submit, or nearly so, and the last of that work."""
        lanes = self.lanes
        linked = np.flatnonzero((lanes.launch >= 0) & (lanes.row != NONE))
        linked = linked[np.lexsort((lanes.end_ns[linked], lanes.launch[linked]))]
        last = linked[np.append(firsts(lanes.launch[linked])[1:], len(linked)) - 1] if len(linked) else linked
        call = _lookup(lanes.launch[last], self.row)
        has = np.flatnonzero(call != NONE)
        activity = last[call[has]]
        until = np.where(self.call[has] == Call.SYNC, self.limit_ns[has], self.end_ns[has])
        returned_after = lanes.end_ns[activity] <= until
        # A copy from pageable memory returns when its last piece is on the way.
        copy, end = self.call[has] == Call.COPY, self.end_ns[has]
        returned_after |= copy & (end - self.start_ns[has] > PLAIN_NS) & (end > lanes.start_ns[activity])
        launch = self.call[has] == Call.LAUNCH
        if np.count_nonzero(returned_after[launch]) < BLOCKING_LAUNCHES * np.count_nonzero(launch):
            returned_after &= ~launch
        return has[returned_after], activity[returned_after]

    def recorded(self, records: Records) -> Pairs:
        """What the trace says of single calls."""
        host = records.waiter != Waiter.STREAM_FOR_EVENT
        which = _lookup(records.call[host], self.row)
        call = np.flatnonzero(which != NONE)
        which = which[call]
        until = np.minimum(records.instant_ns[host][which], self.start_ns[call])
        return self._last(call, records.lane[host][which], until)

    def streams(self) -> Pairs:
        """Calls that wait for a stream: most likely that of the last work of their thread."""
        call = np.flatnonzero((self.style == STREAM) & ~self._submits())
        last = self.threads.last_before(self.track[call], self.start_ns[call])
        return self._guess(call, last, self.start_ns[call])

    def events(self) -> Pairs:
        """Calls that wait for an event: most likely the one their thread recorded last."""
        call = np.flatnonzero((self.style == EVENT) & ~self._submits())
        trace = self.trace
        record = np.flatnonzero(trace.kind == Kind.RUNTIME)
        record = record[classify.by_name(trace, record, lambda name: "EventRecord" in name) != 0]
        record = record[np.lexsort((trace.ts_ns[record], trace.track[record]))]
        recorded = Order.of(trace.track[record].astype(np.int64), trace.ts_ns[record])
        event = recorded.last_before(self.track[call], self.start_ns[call])
        until = np.where(event == NONE, self.start_ns[call], trace.ts_ns[record[event]] if len(record) else 0)
        last = self.threads.last_before(self.track[call], until)
        return self._guess(call, last, until)

    def devices(self) -> Numbers:
        """Calls that wait for the whole device."""
        return np.flatnonzero((self.style == DEVICE) & ~self._submits())

    def freeing(self) -> Numbers:
        """Calls that free memory and were seen to wait for the device first."""
        call = np.flatnonzero((self.style == FREE) & (self.end_ns - self.start_ns > PLAIN_NS))
        activity, end = self._ended_last(call)
        waited = (activity != NONE) & (2 * (self.end_ns[call] - end) < self.end_ns[call] - self.start_ns[call])
        return call[waited]

    def one_lane(self, guess: Pairs, told: Pairs) -> Pairs:
        """The work of one stream: as the trace tells, else as guessed, else what ended just before the call did."""
        call, activity = guess
        place = _lookup(told[0], call)
        known = place != NONE
        activity = np.where(known, told[1][place] if len(told[1]) else NONE, activity)
        end = self.lanes.end_ns[activity] if len(self.lanes) else np.zeros(len(call), np.int64)
        fits = (activity != NONE) & (end <= self.limit_ns[call])
        long = self.end_ns[call] - self.start_ns[call] > PLAIN_NS
        doubtful = np.flatnonzero(~known & ~(fits & ((end > self.start_ns[call]) | ~long)))
        other, other_end = self._ended_last(call[doubtful])
        near = (other != NONE) & (self.end_ns[call[doubtful]] - other_end <= NEAR_NS) & long[doubtful]
        activity[doubtful[near]] = other[near]
        fits[doubtful[near]] = True
        return call[fits], activity[fits]

    def whole_device(self, call: Numbers) -> Pairs:
        """Each call with the last work of every stream that it cannot have left running."""
        lanes = self.lanes
        count = np.bincount(lanes.lane)
        pairs: list[Pairs] = []
        for lane in np.argsort(-count, kind="stable")[:MOST_LANES].tolist():
            which, activity = self._last(call, np.full(len(call), lane), self.start_ns[call])
            fits = (activity != NONE) & (lanes.end_ns[activity] <= self.limit_ns[which])
            pairs.append((which[fits], activity[fits]))
        none = np.empty(0, np.int64)
        return (
            np.concatenate([none, *(pair[0] for pair in pairs)]),
            np.concatenate([none, *(pair[1] for pair in pairs)]),
        )

    def _submits(self) -> Flags:
        """Whether each call has submitted work of its own."""
        return _lookup(np.sort(self.lanes.launch[self.launched]), self.row) != NONE

    def _guess(self, call: Numbers, last: Numbers, until: Times) -> Pairs:
        """The work up to `until` of the lane that holds `last`, an index into the launches by thread."""
        if not len(self.launched):
            return call, np.full(len(call), NONE)
        found, activity = self._last(call, self.lanes.lane[self.launched[last]], until)
        return found, np.where(last == NONE, NONE, activity)

    def _last(self, call: Numbers, lane: Numbers, until: Times) -> Pairs:
        """Of the work that was submitted to each lane before an instant, the last to end."""
        if not len(self.lanes):
            return call, np.full(len(call), NONE)
        place = self.lanes.order.last_before(lane, until)
        return call, np.where(place == NONE, NONE, self.lanes.reach[place])

    def _ended_last(self, call: Numbers) -> tuple[Numbers, Times]:
        """The work that ended last while each call lasted, having been submitted before it, and its end."""
        lanes = self.lanes
        if not len(lanes):
            return np.full(len(call), NONE), np.zeros(len(call), np.int64)
        place = np.searchsorted(lanes.end_ns[self.by_end], self.end_ns[call] + SKEW_NS, side="right") - 1
        activity = self.by_end[np.maximum(place, 0)]
        end = lanes.end_ns[activity]
        fits = (place >= 0) & (end > self.start_ns[call]) & (lanes.submitted_ns[activity] < self.start_ns[call])
        return np.where(fits, activity, NONE), end


STREAM, EVENT, DEVICE, FREE = 1, 2, 3, 4


def _style(name: str) -> int:
    """What a call waits for, by its name; 0 for one that does not wait."""
    call = classify.call_of(name)
    if call == Call.ALLOCATION:
        return FREE if "Free" in name and "Async" not in name else 0
    if call != Call.SYNC:
        return 0
    if "Event" in name:
        return EVENT
    return STREAM if "Stream" in name or "emcpy" in name or "Queue" in name else DEVICE


def _measured(asked: _Asked, own: Numbers, call: Numbers, activity: Numbers) -> Calls:
    """What the calls cost without waiting, and how soon after the work they return."""
    waits = asked.call == Call.SYNC
    waits[call] = True
    latest = np.full(len(asked.row), np.iinfo(np.int64).min)
    end = asked.lanes.end_ns[activity] if len(activity) else np.empty(0, np.int64)
    np.maximum.at(latest, call, end)
    waited = latest > asked.start_ns
    length = asked.end_ns - asked.start_ns
    after = np.where(waited, np.maximum(asked.end_ns - np.maximum(latest, asked.start_ns), 0), length)
    cost = np.minimum(length, after)
    submits = np.zeros(len(asked.row), np.bool_)
    submits[own] = True
    returns = after[waited & waits & ~submits]
    usual = int(np.quantile(returns, 0.5)) if len(returns) else 0
    kept = np.flatnonzero(waits)
    number = np.cumsum(waits) - 1
    room = asked.end_ns[call] - end
    least = np.minimum(np.where(waited[call], after[call], usual), room)
    return Calls(
        row=asked.row[kept],
        track=asked.track[kept],
        start_ns=asked.start_ns[kept],
        end_ns=asked.end_ns[kept],
        cost_ns=cost[kept],
        waited=waited[kept],
        submits=submits[kept],
        edge_call=number[call],
        edge_activity=activity,
        edge_least_ns=least,
    )


def _lookup(ascending: Numbers, wanted: Numbers) -> Numbers:
    """Where each wanted value first stands among ascending ones, -1 where it does not."""
    if not len(ascending):
        return np.full(len(wanted), NONE)
    place = np.searchsorted(ascending, wanted)
    place[place == len(ascending)] = 0
    return np.where(ascending[place] == wanted, place, NONE)
