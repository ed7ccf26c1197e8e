"""What a gap waited for: the launch call that ended it, and until when the host is to blame."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import lookup
from torchdiag.timeline.activity import Activities
from torchdiag.timeline.device_states import Gaps
from torchdiag.timeline.distinct import firsts, numbered
from torchdiag.trace.columns import Trace


@dataclass(frozen=True, slots=True, eq=False)
class Waits:
    """Each gap of a device split at the end of the launch call it waited for.

    `host_end_ns` int64[g]: until there the host is to blame, from there the launched work was on its way. `launch`
    int64[g]: the awaited launch call, -1 where none is known. `track` int32[g]: the thread whose doings count, -1 for
    none. `trailing` bool[g]: no next activity.
    """

    host_end_ns: NDArray[np.int64]
    launch: NDArray[np.int64]
    track: NDArray[np.int32]
    trailing: NDArray[np.bool_]

    def __getitem__(self, part: slice) -> "Waits":
        return Waits(self.host_end_ns[part], self.launch[part], self.track[part], self.trailing[part])


def awaited_launches(trace: Trace, gaps: Gaps, on_device: Activities, window_end_ns: int) -> NDArray[np.int64]:
    """int64[g]: the launch call each gap waited for, -1 where none is known.

    Of the calls that launched the activities starting where the gap ends, the one with the least (start, end, name,
    row). A gap that ends with the window has no next activity.
    """
    launch = np.full(len(gaps), -1, np.int64)
    first = lookup.places(on_device.start_ns, gaps.end_ns)
    count = lookup.places(on_device.start_ns, gaps.end_ns + 1) - first
    count[gaps.end_ns >= window_end_ns] = 0
    gap = np.repeat(np.arange(len(gaps)), count)
    within = np.arange(len(gap)) - np.repeat(np.cumsum(count) - count, count)
    candidate = on_device.launch[first[gap] + within]
    linked = candidate >= 0
    gap, candidate = gap[linked], candidate[linked]
    if np.any(gap[1:] == gap[:-1]):
        gap, candidate = first_of_each(trace, gap, candidate)
    launch[gap] = candidate
    return launch


def split(trace: Trace, gaps: Gaps, launch: NDArray[np.int64], window_end_ns: int, driver: int) -> Waits:
    """Split gaps into the host's part and the rest; `launch` is the call each waited for, `driver` a track or -1."""
    trailing = gaps.end_ns >= window_end_ns
    known = launch >= 0
    launched = np.where(known, trace.ts_ns[launch] + trace.dur_ns[launch], gaps.start_ns)
    host_end = np.where(trailing, gaps.end_ns, np.clip(launched, gaps.start_ns, gaps.end_ns))
    track = np.where(trailing, np.int32(driver), np.where(known, trace.track[launch], np.int32(-1)))
    return Waits(host_end, launch, track, trailing)


def first_of_each(
    trace: Trace, gap: NDArray[np.int64], candidate: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The least candidate of each gap by (start, end, name, row)."""
    start = trace.ts_ns[candidate]
    order = np.lexsort((candidate, name_order(trace, candidate), start + trace.dur_ns[candidate], start, gap))
    first = order[firsts(gap[order])]
    return gap[first], candidate[first]


def name_order(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[k]: numbers that order the rows as their names are ordered as texts; a row without a name comes first."""
    codes, which = numbered(trace.name[rows])
    names = [trace.names[code] if code >= 0 else "" for code in codes.tolist()]
    rank = np.empty(len(codes), np.int64)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return rank[which]
