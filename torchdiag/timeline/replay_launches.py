"""From a launch call to its activity: where on the host's line the work leaves, and how soon it can begin."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.replay_lanes import NONE, Lanes
from torchdiag.timeline.replay_scope import Scope
from torchdiag.trace.columns import Trace

Times = NDArray[np.int64]
Numbers = NDArray[np.int64]

USUAL_LATENCY_NS = 5_000
"""From a launch call's start to its kernel's, where a trace has no kernel that began at once."""

LONGEST_LATENCY_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Launches:
    """What leaves where: `activity` (index into the lanes), `track`, `instant_ns` and `least_ns`, all int64.

    `least_ns` is how soon after the instant an idle stream begins with the work. Work that began within its call left
    at the start of the call, other work at its end. `latency_ns`: the usual time from a call's start to its work.
    """

    activity: Numbers
    track: Numbers
    instant_ns: Times
    least_ns: Times
    latency_ns: int


def launches_of(trace: Trace, lanes: Lanes, scope: Scope, tracks: NDArray[np.bool_]) -> Launches:
    """The launches of the threads (bool by track) that are replayed.

    Work without a launch call leaves from where the thread that launches next on its stream was just before it began,
    as every stream runs what it is given in order; without such a thread it is left out.
    """
    linked = lanes.launch >= 0
    linked[linked] = tracks[trace.track[lanes.launch[linked]]]
    call_start = trace.ts_ns[lanes.launch]
    call_end = call_start + trace.dur_ns[lanes.launch]
    within = lanes.start_ns < call_end
    previous_end = np.where(lanes.before == NONE, scope.start_ns, lanes.end_ns[lanes.before])
    at_once = linked & (previous_end <= call_start) & (lanes.row != NONE)
    alone = at_once & ~_busy(lanes, call_start)
    at_once = alone if alone.any() else at_once
    usual_from_start = _median(lanes.start_ns[at_once] - call_start[at_once], USUAL_LATENCY_NS)
    usual_from_end = _median(np.maximum(lanes.start_ns[at_once] - call_end[at_once], 0), USUAL_LATENCY_NS // 2)
    instant = np.where(within, call_start, call_end)
    least = np.where(within, usual_from_start, usual_from_end)
    track = np.where(linked, trace.track[lanes.launch], NONE).astype(np.int64)
    guessed = _unlinked(lanes, linked)
    lead = lanes.launch[guessed]
    instant = np.where(linked, instant, np.minimum(lanes.start_ns - usual_from_start, trace.ts_ns[lead]))
    track = np.where(linked, track, trace.track[lead])
    least = np.where(linked, least, usual_from_start)
    known = np.flatnonzero(linked | (guessed != NONE))
    return Launches(known, track[known], instant[known], least[known], usual_from_start)


def _busy(lanes: Lanes, instant: Times) -> NDArray[np.bool_]:
    """bool[m]: whether any device has work at each instant."""
    if not len(lanes):
        return np.zeros(len(instant), np.bool_)
    order = np.argsort(lanes.start_ns, kind="stable")
    reached = np.maximum.accumulate(lanes.end_ns[order])
    place = np.searchsorted(lanes.start_ns[order], instant, side="right") - 1
    return (place >= 0) & (reached[np.maximum(place, 0)] > instant)


def _unlinked(lanes: Lanes, linked: NDArray[np.bool_]) -> Numbers:
    """int64[n]: the next linked activity in the lane of each unlinked one, -1 for none."""
    numbers = np.arange(len(lanes))
    following = np.minimum.accumulate(np.where(linked, numbers, len(lanes))[::-1])[::-1]
    known = np.minimum(following, max(len(lanes) - 1, 0))
    fits = ~linked & (following < len(lanes))
    fits &= lanes.lane[known] == lanes.lane
    return np.where(fits, known, NONE)


def _median(values: Times, otherwise: int) -> int:
    values = values[values >= 0]
    return min(int(np.quantile(values, 0.5)), LONGEST_LATENCY_NS) if len(values) else otherwise
