"""Who may run at the same time: so many jobs, and on each GPU one."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from torchdiag.capture.accelerators import Accelerators
from torchdiag.suite.cases import Case

_VISIBLE: Final = {"cuda": "CUDA_VISIBLE_DEVICES", "xpu": "ZE_AFFINITY_MASK"}


@dataclass(frozen=True, slots=True)
class Slot:
    """A place to run in: `gpu` is the number of the one that is held (None for none).

    In the environment `variables` that GPU is the only one, and `device` is what the run's device is called there.
    """

    gpu: int | None
    device: str
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


class Slots:
    """Hands out places."""

    def __init__(self, jobs: int, accelerators: Accelerators) -> None:
        self._kind = accelerators.kind
        self._count = 0 if accelerators.kind == "cpu" else accelerators.count
        self._free_gpus = set(range(self._count))
        self._free = jobs

    def take(self, case: Case) -> Slot | None:
        """A place for a run; None while there is none."""
        if not self._free:
            return None
        device = case.options.device
        if not self._needs_gpu(case):
            self._free -= 1
            return Slot(None, device)
        _, _, number = device.partition(":")
        wanted = {int(number)} if number else self._free_gpus
        possible = sorted(wanted & self._free_gpus)
        if not possible and (not number or int(number) < self._count):
            return None
        self._free -= 1
        if not possible:
            # There is no such GPU: the run itself will say so.
            return Slot(None, device)
        self._free_gpus.discard(possible[0])
        if self._count == 1:
            return Slot(possible[0], device)
        kind = device.partition(":")[0]
        return Slot(possible[0], f"{kind}:0" if number else device, self._alone(possible[0]))

    def give_back(self, slot: Slot) -> None:
        """The run is over."""
        self._free += 1
        if slot.gpu is not None:
            self._free_gpus.add(slot.gpu)

    def _needs_gpu(self, case: Case) -> bool:
        kind = case.options.device.partition(":")[0]
        # A program takes what there is.
        return self._count > 0 and kind in (self._kind, "auto")

    def _alone(self, gpu: int) -> dict[str, str]:
        variable = _VISIBLE.get(self._kind)
        if variable is None:
            return {}
        visible = [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]
        return {variable: visible[gpu] if gpu < len(visible) else str(gpu)}


def default_jobs(cases: Sequence[Case], accelerators: Accelerators) -> int:
    """One a GPU where runs are on GPUs; on a CPU one alone, since neighbours would be measured with it."""
    if accelerators.kind == "cpu" or all(case.options.device == "cpu" for case in cases):
        return 1
    return max(accelerators.count, 1)
