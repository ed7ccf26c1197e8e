"""Every idle nanosecond belongs to at most one finding: who asks first has it."""

import numpy as np
from numpy.typing import NDArray

from torchdiag.diagnosis.accused import host_spans
from torchdiag.timeline import intervals
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.idle import idle
from torchdiag.timeline.replay_lines import Stretches
from torchdiag.timeline.shortened import shortened, stretches_of

Times = NDArray[np.int64]


class Ownership:
    """The idle time of the steady steps that nobody owns yet."""

    def __init__(self, facts: Facts) -> None:
        found = facts.get(idle)
        self._facts = facts
        self._devices = max(found.devices, 1)
        self._start, self._end = found.charges.start_ns, found.charges.end_ns
        self._track = found.charges.track

    def claim(self, change: Change) -> float:
        """Give what is left of the idle time that a change accounts for to its finding.

        That is the idle time while a thread is in an accused host event, as far as it is charged to that thread, and
        what remains of a gap in which an accused wait ends. Nanoseconds, a mean over the devices.
        """
        total = 0
        trace = self._facts.trace
        blamed = Stretches.join(stretches_of(trace, change.unblocked), shortened(trace, change))
        for track, (start, end) in host_spans(self._facts, blamed):
            total += self._take(start, end, self._track == track)
        if len(change.unblocked):
            total += self._take(*self._after(change.unblocked), np.ones(len(self._start), np.bool_))
        return total / self._devices

    def _after(self, waits: NDArray[np.int64]) -> tuple[Times, Times]:
        """From the end of each wait to the end of the gap it ends in, as a union."""
        trace = self._facts.trace
        done = np.sort(trace.ts_ns[waits] + trace.dur_ns[waits])
        starts: list[Times] = [np.empty(0, np.int64)]
        ends: list[Times] = [np.empty(0, np.int64)]
        for device in self._facts.partition.devices:
            place = intervals.inside(device.gaps.start_ns, device.gaps.end_ns, done)
            starts.append(done[place >= 0])
            ends.append(device.gaps.end_ns[place[place >= 0]])
        start, end = np.concatenate(starts), np.concatenate(ends)
        order = np.argsort(start, kind="stable")
        return intervals.union(start[order], end[order])

    def _take(self, start: Times, end: Times, asked: NDArray[np.bool_]) -> int:
        bounds = np.sort(np.concatenate((start, end)))
        cut_start, cut_end, whole = intervals.cut(self._start, self._end, bounds)
        taken = asked[whole] & (intervals.inside(start, end, cut_start) >= 0)
        owned = int((cut_end[taken] - cut_start[taken]).sum())
        self._start, self._end = cut_start[~taken], cut_end[~taken]
        self._track = self._track[whole][~taken]
        return owned
