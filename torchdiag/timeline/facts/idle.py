"""Where the devices idled in steady steps, and how busy they were."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.charges import Charges
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.result import Cause

CAUSES = tuple(Cause)
COLUMNS = tuple(field.name for field in fields(Charges))


@dataclass(frozen=True, eq=False)
class Idle:
    """Idle stretches of all devices inside steady steps, cut at step bounds, by (device, start).

    `charges` tells the cause of each, `device` int64 and `step` int64 which device and steady step it is of. Causes are
    positions in `CAUSES`.
    """

    charges: Charges
    device: NDArray[np.int64]
    step: NDArray[np.int64]
    devices: int

    @property
    def length_ns(self) -> NDArray[np.int64]:
        """int64[k]: how long each stretch is."""
        return self.charges.end_ns - self.charges.start_ns

    def total_ns(self, *wanted: Cause) -> int:
        """Idle nanoseconds of some causes (of all without any), a mean over the devices."""
        length = self.length_ns
        if wanted:
            length = length[np.isin(self.charges.cause, [CAUSES.index(cause) for cause in wanted])]
        return int(length.sum() // max(self.devices, 1))


def idle(facts: Facts) -> Idle:
    """Idle stretches of all devices while they have steady steps to do."""
    times = facts.get(steady)
    bounds = np.unique(np.concatenate((times.begun_ns, times.over_ns)))
    blocks: list[Charges] = []
    devices: list[NDArray[np.int64]] = []
    for device in facts.partition.devices:
        charges = device.charges
        start, end, whole = intervals.cut(charges.start_ns, charges.end_ns, bounds)
        cut = Charges(
            start, end, *(getattr(charges, name)[whole] for name in ("cause", "event", "launch", "track", "gap"))
        )
        inside = times.worked_on(start) >= 0
        blocks.append(Charges(*(getattr(cut, name)[inside] for name in COLUMNS)))
        devices.append(np.full(np.count_nonzero(inside), device.device, np.int64))
    charges = Charges(*(np.concatenate([getattr(block, name) for block in (_none(), *blocks)]) for name in COLUMNS))
    device = np.concatenate([np.empty(0, np.int64), *devices])
    return Idle(charges, device, times.worked_on(charges.start_ns), len(facts.partition.devices))


def idle_by_device(facts: Facts) -> list[int]:
    """Idle nanoseconds of each device of the partition, in its order."""
    found = facts.get(idle)
    return [int(found.length_ns[found.device == device.device].sum()) for device in facts.partition.devices]


def gpu_busy(facts: Facts) -> float | None:
    """Share (0..1) of the steady steps in which a device has activity, a mean over the devices; None without one."""
    if not facts.partition.devices:
        return None
    times = facts.get(steady)
    return 1 - facts.get(idle).total_ns() / times.total_ns


def _none() -> Charges:
    none = np.empty(0, np.int64)
    return Charges(none, none, none.astype(np.uint8), none, none, none.astype(np.int32), none)
