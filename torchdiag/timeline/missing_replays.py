"""Replays of captured graphs whose work was not recorded: what the device did meanwhile is unknown."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.activity import Activities
from torchdiag.timeline.charges import Charges
from torchdiag.timeline.distinct import among
from torchdiag.timeline.result import Cause
from torchdiag.trace.columns import Trace
from torchdiag.trace.find_text import holding
from torchdiag.trace.vocabulary import GRAPH_LAUNCH, Call, Kind

FOREVER = int(np.iinfo(np.int64).max)
UNKNOWN = list(Cause).index(Cause.UNKNOWN)


@dataclass(frozen=True, slots=True, eq=False)
class Replays:
    """Disjoint, ascending stretches, `start_ns` and `end_ns` int64, and the first graph launch of each, `launch` int64.

    A replay that nothing is seen to follow ends at FOREVER, that is, with the window.
    """

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    launch: NDArray[np.int64]


def missing_replays(trace: Trace, activities: Activities) -> Replays:
    """The stretches in which a graph ran unseen.

    Such a replay lasts from its launch to the end of the next call that waits for the device, or to the start of the
    first activity launched after it.
    """
    launch = unseen_launches(trace, activities)
    start = trace.ts_ns[launch]
    order = np.lexsort((launch, start))
    launch, start = launch[order], start[order]
    launched = start + trace.dur_ns[launch]
    end = np.minimum(ends_of_waits(trace, launched), starts_of_later_work(trace, activities, launched))
    first, last = intervals.union(start, end)
    return Replays(first, last, launch[np.searchsorted(start, first, side="left")])


def unseen_launches(trace: Trace, activities: Activities) -> NDArray[np.int64]:
    """int64: rows of the graph launches no activity is linked to, ascending."""
    named = np.zeros(len(trace.names) + 1, np.bool_)  # the last is for NO_TEXT, which is -1
    named[holding(trace.names, GRAPH_LAUNCH)] = True
    if not named.any():
        return np.empty(0, np.int64)
    rows = np.flatnonzero(trace.kind == Kind.RUNTIME)
    rows = rows[named[trace.name[rows]]]
    return rows[~among(rows, activities.launch)]


def ends_of_waits(trace: Trace, instant: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[k]: end of the first call that starts at or after each instant and waits for the device."""
    rows = np.flatnonzero(trace.call == Call.SYNC)
    start = trace.ts_ns[rows]
    end = start + trace.dur_ns[rows]
    order = np.lexsort((end, start))
    return following(start[order], end[order], instant)


def starts_of_later_work(trace: Trace, activities: Activities, instant: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[k]: start of the first activity, on any device, whose launch starts at or after each instant."""
    linked = activities.launch >= 0
    launched = trace.ts_ns[activities.launch[linked]]
    order = np.argsort(launched, kind="stable")
    start = activities.start_ns[linked][order]
    earliest = np.minimum.accumulate(start[::-1])[::-1]
    return following(launched[order], earliest, instant)


def following(keys: NDArray[np.int64], values: NDArray[np.int64], instant: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[k]: the value of the first of the ascending keys at or after each instant, FOREVER where none is."""
    return np.append(values, FOREVER)[np.searchsorted(keys, instant, side="left")]


def mark_unknown(charges: Charges, replays: Replays, track: NDArray[np.int32]) -> Charges:
    """The charges with what lies within a replay charged as unknown; `track` is the trace's column."""
    if not len(replays.start_ns):
        return charges
    bounds = np.stack((replays.start_ns, replays.end_ns), axis=1).ravel()
    start, end, whole = intervals.cut(charges.start_ns, charges.end_ns, bounds)
    replay = intervals.inside(replays.start_ns, replays.end_ns, start)
    unseen = replay >= 0
    launch = replays.launch[replay]  # meaningless where unseen is false
    return Charges(
        start_ns=start,
        end_ns=end,
        cause=np.where(unseen, np.uint8(UNKNOWN), charges.cause[whole]),
        event=np.where(unseen, -1, charges.event[whole]),
        launch=np.where(unseen, launch, charges.launch[whole]),
        track=np.where(unseen, track[launch], charges.track[whole]),
        gap=charges.gap[whole],
    )
