"""What part of a trace a replay re-times: from when to when, on which threads, between which step borders."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.activity import Activities
from torchdiag.timeline.distinct import among
from torchdiag.timeline.host_states import HOST_KINDS
from torchdiag.timeline.marks import NO_TRACK
from torchdiag.timeline.partition import Partition
from torchdiag.timeline.result import Step
from torchdiag.trace.columns import Trace

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The time that is replayed, in the trace's clock. Everything before `start_ns` stays as it was measured.

    `borders_ns` int64: where steps begin, ascending, the first at `start_ns`. `driver`: the track the borders are
    instants of, -1 in a trace without host events. `host_end_ns`: until when the driver counts, None where only the
    device's end does. `counted` bool[n]: the activities whose end the end waits for.
    """

    start_ns: int
    end_ns: int
    borders_ns: Times
    driver: int
    host_end_ns: int | None
    counted: NDArray[np.bool_]


def scope_of(trace: Trace, partition: Partition, steps: tuple[Step, ...]) -> Scope:
    """From the first step to the end of the last one and of the work it launched; the whole window without steps."""
    activities, driver = partition.activities, _driver(trace, partition)
    chosen = among(activities.device, np.array([device.device for device in partition.devices], np.int64))
    if steps:
        borders = np.sort(np.array([step.start_ns for step in steps], np.int64))
        host_end = max(step.end_ns for step in steps)
        submitted = _submitted(trace, activities)
        # As the partition's window: unlinked work does not lengthen it, unless there is no other.
        known = activities.launch >= 0 if driver != NO_TRACK else np.ones(len(activities), np.bool_)
        counted = chosen & known & (submitted < host_end) & (activities.end_ns > borders[0])
        end = max(host_end, int(activities.end_ns[counted].max(initial=host_end)))
        counted |= chosen & (activities.launch < 0) & (activities.end_ns > borders[0]) & (activities.end_ns <= end)
        return Scope(int(borders[0]), end, borders, driver, host_end if driver != NO_TRACK else None, counted)
    if partition.devices:
        start = min(device.window.start_ns for device in partition.devices)
        end = max(device.window.end_ns for device in partition.devices)
        counted = chosen & (activities.start_ns < end) & (activities.end_ns > start)
        selected = any(device.window.source == "selection" for device in partition.devices)
        host_end = _last_boundary(trace, driver, start, end) if selected else None
        return Scope(start, end, np.array([start], np.int64), driver, host_end, counted)
    start, end = _host_extent(trace, driver)
    return Scope(start, end, np.array([start], np.int64), driver, end, np.zeros(len(activities), np.bool_))


def _driver(trace: Trace, partition: Partition) -> int:
    """The partition's driver, else the thread with most host events."""
    if partition.driver != NO_TRACK:
        return partition.driver
    host = trace.track[HOST_KINDS[trace.kind]]
    return int(np.bincount(host).argmax()) if len(host) else NO_TRACK


def _submitted(trace: Trace, activities: Activities) -> Times:
    """When each activity was launched; its own start where that is not recorded."""
    return np.where(activities.launch >= 0, trace.ts_ns[activities.launch], activities.start_ns)


def _host_extent(trace: Trace, driver: int) -> tuple[int, int]:
    rows = np.flatnonzero(HOST_KINDS[trace.kind] & (trace.track == driver))
    if not len(rows):
        return 0, 0
    start = trace.ts_ns[rows]
    return int(start.min()), int((start + trace.dur_ns[rows]).max())


def _last_boundary(trace: Trace, driver: int, start_ns: int, end_ns: int) -> int | None:
    """The last instant of a stretch at which a host event of the driver begins or ends, None where none does."""
    rows = np.flatnonzero(HOST_KINDS[trace.kind] & (trace.track == driver))
    instants = np.concatenate((trace.ts_ns[rows], trace.ts_ns[rows] + trace.dur_ns[rows]))
    instants = instants[(instants > start_ns) & (instants <= end_ns)]
    return int(instants.max()) if len(instants) else None
