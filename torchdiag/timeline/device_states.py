"""What a device did in a window, and when it did nothing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.activity import Activities
from torchdiag.timeline.result import States, Window
from torchdiag.trace.vocabulary import Work


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Maximal idle stretches of one device, ascending: `start_ns`, `end_ns` int64."""

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start_ns)

    def __getitem__(self, part: slice) -> "Gaps":
        return Gaps(self.start_ns[part], self.end_ns[part])


def sweep(on_device: Activities, window: Window) -> tuple[States, Gaps]:
    """The time in each state, and the gaps.

    At an instant the first `Work` in order counts, so the time of each is what it adds to the union of those before:
    `|A or B| - |A|`.
    """
    start = np.clip(on_device.start_ns, window.start_ns, window.end_ns)
    end = np.clip(on_device.end_ns, window.start_ns, window.end_ns)
    covered = [0]
    busy = start[:0], end[:0]
    for work in Work:
        upto = on_device.work <= work
        busy = intervals.union(start[upto], end[upto])
        covered.append(intervals.length(*busy))
    compute, communication, memory, transfer = np.diff(covered).tolist()
    idle = window.length_ns - covered[-1]
    gaps = Gaps(*intervals.between(*busy, window.start_ns, window.end_ns))
    return States(compute, communication, memory, transfer, idle), gaps
