"""The work of each stream in the order in which the stream runs it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.activity import Activities
from torchdiag.timeline.distinct import numbered
from torchdiag.timeline.missing_replays import missing_replays
from torchdiag.timeline.replay_scope import Scope
from torchdiag.trace.columns import Trace

Times = NDArray[np.int64]
Numbers = NDArray[np.int64]

NONE = -1

UNSEEN_STREAM = int(np.iinfo(np.int64).min)
"""Where the replays of graphs run that were not recorded."""


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Things in groups, in an order within each group, each submitted at some instant.

    A group takes what is submitted in order: it counts as submitted once everything before it is.
    """

    group: Numbers
    _instants: Times
    _reached: Numbers

    @classmethod
    def of(cls, group: Numbers, submitted_ns: Times) -> "Order":
        """`group` int64[n], ascending, from 0; `submitted_ns` int64[n] of the things in their order."""
        instants, rank = numbered(submitted_ns)
        return cls(group, instants, np.maximum.accumulate(group * (len(instants) + 1) + rank))

    def last_before(self, group: Numbers, instant_ns: Times) -> Numbers:
        """int64[m]: the last thing of each group that was submitted before each instant, -1 for none."""
        if not len(self.group):
            return np.full(len(group), NONE)
        earlier = np.searchsorted(self._instants, instant_ns, side="left")
        key = group * (len(self._instants) + 1) + earlier
        place = np.searchsorted(self._reached, key, side="left") - 1
        found = np.maximum(place, 0)
        return np.where((place >= 0) & (self.group[found] == group), found, NONE)


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """The activities a replay knows, sorted by (lane, start, end): a lane is a stream of a device.

    `row` int64 is the trace row, -1 for a graph replay whose work was not recorded; `launch` int64 the row of its
    call, -1 for none; `submitted_ns` when that was called (its own start without a call). `before` int64 is the one
    before it in its lane, -1 for none; `reach` int64 the one up to it, itself included, that ends last. `counted`
    bool: the end of the replay waits for it.
    """

    row: Numbers
    start_ns: Times
    end_ns: Times
    device: Numbers
    stream: Numbers
    lane: Numbers
    launch: Numbers
    submitted_ns: Times
    before: Numbers
    reach: Numbers
    counted: NDArray[np.bool_]
    order: Order

    def __len__(self) -> int:
        return len(self.row)

    def numbers(self) -> dict[tuple[int, int], int]:
        """The lane of each (device, stream)."""
        first = np.flatnonzero(self.before == NONE)
        places = zip(self.device[first].tolist(), self.stream[first].tolist(), strict=True)
        return dict(zip(places, self.lane[first].tolist(), strict=True))


def lanes_of(trace: Trace, activities: Activities, scope: Scope) -> Lanes:
    """The activities within a scope, and the last one of each stream before it."""
    unseen = missing_replays(trace, activities)
    inside = (unseen.start_ns < scope.end_ns) & (unseen.end_ns > scope.start_ns)
    launch = np.concatenate((activities.launch, unseen.launch[inside]))
    row = np.concatenate((activities.row, np.full(len(launch) - len(activities), NONE)))
    start = np.concatenate((activities.start_ns, unseen.start_ns[inside]))
    end = np.concatenate((activities.end_ns, np.minimum(unseen.end_ns[inside], scope.end_ns)))
    added = len(launch) - len(activities)
    device = np.concatenate((activities.device, np.full(added, activities.device[0] if len(activities) else 0)))
    stream = np.concatenate((activities.stream, np.full(added, UNSEEN_STREAM)))
    counted = np.concatenate((scope.counted, np.ones(added, np.bool_)))
    _, device_number = numbered(device)
    _, stream_number = numbered(stream)
    _, lane = numbered(device_number * (int(stream_number.max(initial=0)) + 1) + stream_number)
    order = np.lexsort((row, end, start, lane))
    late = (end[order] > scope.start_ns) | (start[order] >= scope.start_ns)
    kept = late.copy()
    kept[:-1] |= late[1:] & (lane[order[1:]] == lane[order[:-1]])
    order = order[kept & (start[order] < max(scope.end_ns, scope.start_ns + 1))]
    _, lane = numbered(lane[order])
    start, end, launch = start[order], end[order], launch[order]
    submitted = np.where(launch >= 0, trace.ts_ns[launch], start)
    before = np.arange(-1, len(order) - 1)
    before[np.flatnonzero(lane[1:] != lane[:-1]) + 1] = NONE
    return Lanes(
        row=row[order],
        start_ns=start,
        end_ns=end,
        device=device[order],
        stream=stream[order],
        lane=lane,
        launch=launch,
        submitted_ns=submitted,
        before=before,
        reach=_reach(lane, end),
        counted=counted[order],
        order=Order.of(lane, submitted),
    )


def _reach(lane: Numbers, end_ns: Times) -> Numbers:
    """int64[n]: of the activities of its lane up to each, the one that ends last."""
    ends, rank = numbered(end_ns)
    key = lane * (len(ends) + 1) + rank
    latest = key == np.maximum.accumulate(key)
    return np.maximum.accumulate(np.where(latest, np.arange(len(lane)), 0))
