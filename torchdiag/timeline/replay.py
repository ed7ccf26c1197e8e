"""What the step times would have been: a measured trace re-timed without some of what happened in it.

The replay keeps what a trace shows to be so (the order on each thread and stream, what each kernel, call and thread
waited for, and how long) and computes anew when everything comes. Nothing changed gives the measured times.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.changes import Change
from torchdiag.timeline.partition import Partition
from torchdiag.timeline.replay_lanes import NONE
from torchdiag.timeline.replay_parts import Parts
from torchdiag.timeline.replay_retime import Retiming, scaled
from torchdiag.timeline.replay_scope import Scope, scope_of
from torchdiag.timeline.result import Step
from torchdiag.trace.columns import Trace

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """A trace ready to be re-timed. `steps_measured_ns` int64[n] are the measured step times, one a step.

    A step lasts from the start of its mark to that of the next; the last one to the end of its mark or of the work
    launched by then, whichever is later. Without steps the whole window is one. What comes before the first step is
    not changed.
    """

    steps_measured_ns: Times
    devices: tuple[int, ...]
    _scope: Scope
    _retiming: Retiming

    @classmethod
    def of(cls, trace: Trace, partition: Partition, steps: tuple[Step, ...]) -> "Replay":
        """The replay of what `steps` cover, of the whole window where there are none."""
        scope = scope_of(trace, partition, steps)
        parts = Parts.of(trace, partition.activities, scope)
        lines, waiting = parts.lines(), parts.waiting()
        graph = parts.graph(lines, waiting)
        measured = np.diff(np.append(scope.borders_ns, scope.end_ns))
        devices = tuple(device.device for device in partition.devices)
        return cls(measured, devices, scope, Retiming.of(trace, lines, parts.lanes, parts.calls, graph, waiting))

    def steps_ns(self, changes: Sequence[Change]) -> Times:
        """int64[n]: the new time of each step; the measured ones for no changes.

        The sum is never less than the time in which a device is busy with what remains. Raises ValueError for a row
        that the trace does not have.
        """
        return self._steps(changes, self._times(changes))

    def paces_ns(self, changes: Sequence[Change]) -> Times:
        """int64[n]: the new time from the end of each step to the end of the next, the first one from its start.

        A step is over when the host has come to the next one and the devices have done what it launched. Where the
        host runs ahead of them, steps themselves are short and the last one is long; their paces are even. Both sum up
        to the same. Raises ValueError for a row that the trace does not have.
        """
        scope, retiming = self._scope, self._retiming
        lanes, times = retiming.lanes, self._times(changes)
        over = scope.start_ns + np.cumsum(self._steps(changes, times))
        own = np.flatnonzero(lanes.counted & (lanes.submitted_ns >= scope.start_ns))
        step = np.searchsorted(scope.borders_ns, lanes.submitted_ns[own], side="right") - 1
        end = times[len(retiming.lines) : -1][own] + retiming.durations(changes)[own]
        np.maximum.at(over, step, np.minimum(end, over[-1]))
        return np.diff(np.maximum.accumulate(over), prepend=scope.start_ns)

    def device_idle_ns(self, changes: Sequence[Change]) -> Times:
        """int64[d]: the time that each of `devices` is idle during the steps."""
        times = self._times(changes)
        length = int(self._steps(changes, times).sum())
        lanes, start_ns = self._retiming.lanes, times[len(self._retiming.lines) : -1]
        end = start_ns + self._retiming.durations(changes)
        idle = np.full(len(self.devices), length, np.int64)
        for number, device in enumerate(self.devices):
            here = np.flatnonzero((lanes.device == device) & (lanes.row != NONE))
            order = here[np.argsort(start_ns[here], kind="stable")]
            low, high = self._scope.start_ns, self._scope.start_ns + length
            idle[number] -= intervals.length(
                *intervals.union(np.clip(start_ns[order], low, high), np.clip(end[order], low, high))
            )
        return idle

    def _times(self, changes: Sequence[Change]) -> Times:
        return self._retiming.graph.times(self._retiming.lags(changes))

    def _steps(self, changes: Sequence[Change], times: Times) -> Times:
        scope, lines = self._scope, self._retiming.lines
        track = np.full(len(scope.borders_ns), scope.driver, np.int64)
        borders = times[lines.nodes(track, scope.borders_ns)]
        end = max(int(times[-1]), scope.start_ns + self._least_busy_ns(changes), int(borders[-1]))
        return np.diff(np.append(borders, end))

    def _least_busy_ns(self, changes: Sequence[Change]) -> int:
        """What is left of the time in which the busiest device was busy.

        Work of several streams that was seen one after the other may fill the device: without the host between them
        it need not run side by side.
        """
        lanes, scope = self._retiming.lanes, self._scope
        share = self._retiming.shares(changes)
        busiest = 0
        for device in self.devices:
            here = np.flatnonzero(lanes.counted & (lanes.device == device) & (lanes.row != NONE))
            order = here[np.argsort(lanes.start_ns[here], kind="stable")]
            start = np.clip(lanes.start_ns[order], scope.start_ns, scope.end_ns)
            end = np.clip(lanes.end_ns[order], scope.start_ns, scope.end_ns)
            for part in set(share[order].tolist()):
                chosen = share[order] >= part
                covered = intervals.length(*intervals.union(start[chosen], end[chosen]))
                busiest = max(busiest, int(scaled(np.array([covered]), np.array([part]))[0]))
        return busiest
