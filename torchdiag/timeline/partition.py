"""Every nanosecond of every device's window, in one state and, when idle, under one cause."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from torchdiag.errors import TorchdiagError
from torchdiag.timeline import activity, causes, device_states, intervals, loader, marks, missing_replays, waits
from torchdiag.timeline import window as windows
from torchdiag.timeline.activity import Activities
from torchdiag.timeline.charges import Charges
from torchdiag.timeline.device_states import Gaps
from torchdiag.timeline.distinct import distinct
from torchdiag.timeline.host_states import HostStates
from torchdiag.timeline.missing_replays import Replays
from torchdiag.timeline.result import States, Window
from torchdiag.timeline.waits import Waits
from torchdiag.trace.columns import Trace

Times = NDArray[np.int64]

GAPS_AT_ONCE = 1 << 15
"""Gaps charged together: the charges of all would take more memory than the trace."""


@dataclass(frozen=True, slots=True, eq=False)
class Host:
    """What the gaps of every device are charged by."""

    trace: Trace
    driver: int
    states: HostStates
    loading: dict[int, tuple[Times, Times]]
    replays: Replays


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTime:
    """Where the time of one device went; `activities` are all of its own, also outside the window."""

    device: int
    window: Window
    states: States
    gaps: Gaps
    waits: Waits
    activities: Activities
    host: Host

    def blocks(self) -> Iterator[Charges]:
        """The charges of the device's gaps, GAPS_AT_ONCE of them after the other; a gap is in one block."""
        host = self.host
        for first in range(0, max(len(self.gaps), 1), GAPS_AT_ONCE):
            part = slice(first, first + GAPS_AT_ONCE)
            charges = causes.charge(
                host.trace, self.gaps[part], self.waits[part], host.driver, host.states, host.loading
            )
            charges = missing_replays.mark_unknown(charges, host.replays, host.trace.track)
            yield replace(charges, gap=charges.gap + first)

    @property
    def charges(self) -> Charges:
        """The charges of all gaps in one."""
        return causes.join(list(self.blocks()))


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The time of every device, and the facts it was found with.

    `activities` are those of all devices, `overruns` of them had their duration cut. `marks` and `selected` are rows of
    step marks (int64), `driver` the track of the driver thread or -1.
    """

    devices: tuple[DeviceTime, ...]
    activities: Activities
    overruns: int
    marks: NDArray[np.int64]
    selected: NDArray[np.int64]
    driver: int


@dataclass(frozen=True, slots=True, eq=False)
class Idle:
    """The states of one device, and its gaps, not yet charged."""

    window: Window
    states: States
    gaps: Gaps
    waits: Waits
    activities: Activities


def partition(
    trace: Trace, *, steps: str | None = None, window: str | None = None, device: int | None = None
) -> Partition:
    """Partition the time of a trace's devices, or of one `device`.

    `steps` and `window` narrow it (`selection.py` says how they are written). Raises TorchdiagError for a selection
    that the trace cannot meet.
    """
    if steps is not None and window is not None:
        raise TorchdiagError("steps and window both choose what to look at; give one of them")
    activities, overruns = activity.collect(trace)
    all_marks = marks.marks(trace)
    selected = windows.selected_marks(all_marks, steps)
    driver = marks.driver(trace, all_marks)
    asked = None if window is None else windows.selected_window(trace, window)
    idle: dict[int, Idle] = {}
    for number in chosen_devices(activities, device):
        on_device = activities.on(number)
        reach = asked or windows.window_of(trace, selected, on_device)
        idle[number] = idle_time(trace, on_device, reach, driver)
    host = host_of(trace, activities, idle.values(), driver)
    devices = (
        DeviceTime(number, it.window, it.states, it.gaps, it.waits, it.activities, host) for number, it in idle.items()
    )
    return Partition(tuple(devices), activities, overruns, all_marks, selected, driver)


def chosen_devices(activities: Activities, device: int | None) -> list[int]:
    """The devices to partition, ascending. Raises TorchdiagError for one that the trace does not have."""
    present = activities.devices()
    if device is None:
        return present
    if device not in present:
        known = ", ".join(map(str, present)) or "none"
        raise TorchdiagError(f"the trace has no activity on device {device}; devices with activity: {known}")
    return [device]


def idle_time(trace: Trace, on_device: Activities, window: Window, driver: int) -> Idle:
    """The states of a device in a window, and what each of its gaps waited for."""
    states, gaps = device_states.sweep(on_device, window)
    launch = waits.awaited_launches(trace, gaps, on_device, window.end_ns)
    return Idle(window, states, gaps, waits.split(trace, gaps, launch, window.end_ns, driver), on_device)


def host_of(trace: Trace, activities: Activities, idle: Collection[Idle], driver: int) -> Host:
    """The host while the devices idled. Its events are looked through once for all of them."""
    start = np.concatenate([np.empty(0, np.int64), *(device.gaps.start_ns for device in idle)])
    end = np.concatenate([np.empty(0, np.int64), *(device.waits.host_end_ns for device in idle)])
    order = np.argsort(start, kind="stable")
    tracks = distinct(np.concatenate([np.array([driver]), *(device.waits.track for device in idle)]))
    states = HostStates(trace, tracks[tracks >= 0], *intervals.union(start[order], end[order]))
    return Host(trace, driver, states, loader.loading(trace), missing_replays.missing_replays(trace, activities))
