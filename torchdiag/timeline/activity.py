"""Device activities: what ran on a device, when, and which call launched it."""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import links
from torchdiag.timeline.distinct import distinct, numbered
from torchdiag.trace import classify
from torchdiag.trace.columns import MISSING, Trace
from torchdiag.trace.vocabulary import Kind

OVERRUN_NS = 1_000_000
"""Activities of one stream may overlap by this much; beyond it the duration is a fault of the recorder."""

NO_STREAM = -1


@dataclass(frozen=True, slots=True, eq=False)
class Activities:
    """Device activities sorted by (device, start, end, row), durations repaired.

    `row` int64 is the trace row, `start_ns` and `end_ns` int64 (end is cut where the duration was faulty), `device`
    and `stream` int64 (stream -1 when the trace has none), `work` uint8 of `vocabulary.Work`, `launch` int64 the row
    of the launching call or -1 for unlinked work.
    """

    row: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    device: NDArray[np.int64]
    stream: NDArray[np.int64]
    work: NDArray[np.uint8]
    launch: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, part: "slice | NDArray[np.int64]") -> "Activities":
        return Activities(*(getattr(self, field.name)[part] for field in fields(self)))

    def devices(self) -> list[int]:
        """The devices that have activity, ascending."""
        return distinct(self.device).tolist()

    def on(self, device: int) -> "Activities":
        """The activities of one device."""
        low, high = np.searchsorted(self.device, [device, device + 1])
        return self[int(low) : int(high)]


def collect(trace: Trace) -> tuple[Activities, int]:
    """Every device activity of the trace, and how many had a faulty duration that was cut."""
    kind = trace.kind
    row = np.flatnonzero((kind == Kind.KERNEL) | (kind == Kind.MEMCPY) | (kind == Kind.MEMSET))
    start = trace.ts_ns[row]
    activities = Activities(
        row=row,
        start_ns=start,
        end_ns=start + trace.dur_ns[row],
        device=devices(trace, row),
        stream=trace.args.stream.at(row, NO_STREAM),
        work=classify.works(trace, row),
        launch=links.launches(trace, row),
    )
    activities = in_order(activities)
    end = ends_within_reach(activities)
    overruns = int(np.count_nonzero(end != activities.end_ns))
    if overruns:
        activities = in_order(replace(activities, end_ns=end))
    return activities, overruns


def devices(trace: Trace, row: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[k]: the device of each row: its `device`, else a pid that is a number, else 0."""
    of_track = np.array([pid if isinstance(pid, int) else 0 for pid in trace.tracks.pids], np.int64)
    told = trace.args.device.at(row, MISSING)
    return np.where(told == MISSING, of_track[trace.track[row]], told)


def in_order(activities: Activities) -> Activities:
    """Sorted by (device, start, end, row)."""
    order = np.lexsort((activities.row, activities.end_ns, activities.start_ns, activities.device))
    return activities[order]


def ends_within_reach(activities: Activities) -> NDArray[np.int64]:
    """int64[n]: ends, cut at the next later start on the same stream where they run past it by more than 1 ms."""
    _, stream = numbered(activities.stream)
    _, device = numbered(activities.device)
    lane = device * (int(stream.max(initial=0)) + 1) + stream
    order = np.argsort(lane, kind="stable")  # (lane, start, end)
    lane, start = lane[order], activities.start_ns[order]
    new_run = np.ones(len(order), np.bool_)
    new_run[1:] = (lane[1:] != lane[:-1]) | (start[1:] != start[:-1])
    first_of_run = np.append(np.flatnonzero(new_run), len(order))
    following = first_of_run[np.cumsum(new_run)]
    followed = following < len(order)
    following[~followed] = 0
    followed &= lane[following] == lane
    end = activities.end_ns[order]
    too_long = followed & (end - start[following] > OVERRUN_NS)
    repaired = activities.end_ns.copy()
    repaired[order[too_long]] = start[following[too_long]]
    return repaired
