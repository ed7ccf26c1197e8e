"""The launch queue: how many launches a host may be ahead of a stream before its next call has to wait.

A call that lasts long while the device is never idle, and returns as soon as some work ends, has waited for a free
place. How far that work was ahead of the launched one is the queue's depth.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.replay_lanes import NONE, Lanes, Order
from torchdiag.timeline.replay_lines import Stretches
from torchdiag.trace.columns import Trace

Times = NDArray[np.int64]
Numbers = NDArray[np.int64]

USUAL_DEPTH = 1024
"""Launches that CUDA takes ahead of the device."""

LEAST_DEPTH = 8
LEAST_HELD = 3
"""Fewer calls than this were long by chance."""

SAME_DEPTH = 0.8
"""Calls that waited for less than this share of the deepest queue were long for another reason."""

LONG = 3
"""Times the usual duration of a launch call that make a long one."""

LEAST_LONG_NS = 5_000
LONGEST_USUAL_NS = 1_000_000_000
RETURN_NS = 20_000
"""How soon after the end of some work a call returns that waited for it."""

IDLE_NS = 10_000
"""Between two activities of a busy stream lies less than this."""


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """The call that launched `activity` returns no sooner than `source` has ended: int64 indices into the lanes.

    `least_ns` int64: how soon after. `blocked` are the stretches of threads that calls spent waiting for a place.
    """

    activity: Numbers
    source: Numbers
    least_ns: Times
    blocked: Stretches


def queue_of(trace: Trace, lanes: Lanes, linked: Numbers) -> Queue:
    """The launch queues of the streams; `linked` are the activities whose launch is replayed, ascending."""
    one = linked[np.diff(lanes.launch[linked], prepend=NONE) != 0]  # of a graph, the first
    start = trace.ts_ns[lanes.launch[one]]
    length = trace.dur_ns[lanes.launch[one]]
    end = start + length
    usual = min(int(np.quantile(length, 0.25)), LONGEST_USUAL_NS) if len(length) else 0
    ahead = _ahead(lanes, one, end)
    long = np.flatnonzero((length > LONG * usual) & (length > usual + LEAST_LONG_NS))
    freed = _freed(lanes, one[long], start[long], end[long])
    depth = np.where(freed == NONE, 0, one[long] - freed)
    deepest = int(depth.max(initial=0))
    full = (depth >= LEAST_DEPTH) & (depth >= SAME_DEPTH * deepest)
    waited = np.zeros(len(one), np.bool_)
    waited[long[full]] = True
    farthest = int(ahead[~waited].max(initial=0))
    if np.count_nonzero(full) < LEAST_HELD or SAME_DEPTH * farthest > deepest:  # others were not held up there
        waited[:], full[:], deepest = False, False, max(farthest, USUAL_DEPTH)
    others = np.flatnonzero(~waited & (ahead > 0))
    others = others[_places(lanes)[one[others]] >= deepest]
    others = others[lanes.end_ns[one[others] - deepest] <= end[others]]
    held, source = long[full], freed[full]
    least = np.concatenate((end[held] - lanes.end_ns[source], np.zeros(len(others), np.int64)))
    track = trace.track[lanes.launch[one[held]]].astype(np.int64)
    return Queue(
        activity=np.concatenate((one[held], one[others])),
        source=np.concatenate((source, one[others] - deepest)),
        least_ns=least,
        blocked=Stretches(track, start[held], end[held] - usual),
    )


def _ahead(lanes: Lanes, activity: Numbers, instant: Times) -> Numbers:
    """int64[k]: how many activities of its lane, each one included, had not ended at an instant."""
    if not len(activity):
        return activity
    ended = Order.of(lanes.lane, lanes.end_ns[lanes.reach]).last_before(lanes.lane[activity], instant + 1)
    return np.where(ended == NONE, _places(lanes)[activity] + 1, activity - ended)


def _places(lanes: Lanes) -> Numbers:
    """int64[n]: how many activities come before each one in its lane."""
    first = np.maximum.accumulate(np.where(lanes.before == NONE, np.arange(len(lanes)), 0))
    return np.arange(len(lanes)) - first


def _freed(lanes: Lanes, activity: Numbers, start: Times, end: Times) -> Numbers:
    """The work of the same lane whose end let each long call return, -1 for a call that nothing seems to have blocked.

    `activity` is what the call launched, `start` and `end` when it was called.
    """
    if not len(activity):
        return activity
    reached = lanes.end_ns[lanes.reach]
    ends = Order.of(lanes.lane, reached)
    lane = lanes.lane[activity]
    freed = ends.last_before(lane, end + 1)
    running = ends.last_before(lane, start + 1) + 1  # the first to end after the call began
    idle = np.zeros(len(lanes), np.bool_)
    idle[1:] = (lanes.before[1:] != NONE) & (lanes.start_ns[1:] - reached[:-1] >= IDLE_NS)
    rests = np.cumsum(idle)
    known = np.clip(freed, 0, activity - 1)
    begun = np.clip(running, 0, known)
    busy = rests[known + 1] == rests[begun]
    soon = (end - reached[known] <= RETURN_NS) & (reached[known] > start)
    return np.where((freed != NONE) & (freed < activity) & busy & soon, freed, NONE)
