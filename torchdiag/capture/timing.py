"""Times of single steps: the wall clock's and, on a GPU, the device's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdiag.capture import device as devices
from torchdiag.capture.clock import now_ns

if TYPE_CHECKING:
    import torch


class StepTimer:
    """Takes the time of steps one by one, leaving out what happens between `lap` and `resume`.

    On a GPU a step is measured twice: by the wall clock from where the host begins it to where the host is through,
    and by events in the device's stream. Nothing waits for the device between steps, so steps follow each other as they
    do without a timer, and the device's time is the one to quote where the host runs ahead.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._began_ns = 0
        self._event: Any = None
        self._events: list[tuple[Any, Any]] = []
        self.step_ns: list[int] = []

    def start(self) -> None:
        """A step begins now, with nothing left to do from before."""
        devices.synchronize(self._device)
        self.resume()

    def resume(self) -> None:
        """A step begins now."""
        self._event = devices.event(self._device)
        self._began_ns = now_ns()

    def lap(self) -> None:
        """The step is over and the next one begins, unless `resume` begins it later."""
        now = now_ns()
        self.step_ns.append(now - self._began_ns)
        event = devices.event(self._device)
        if event is not None:
            self._events.append((self._event, event))
        self._event = event
        self._began_ns = now if event is None else now_ns()

    def device_step_ns(self) -> list[int] | None:
        """The steps between device events, after waiting for the device; None without such events."""
        if not self._events:
            return None
        devices.synchronize(self._device)
        return [devices.between_ns(first, second) for first, second in self._events]


def steady(step_ns: list[int], *, last: int = 3, within: float = 0.1) -> bool:
    """Whether the `last` step times agree: the longest is at most 10 % above the shortest."""
    recent = step_ns[-last:]
    return len(recent) == last and max(recent) <= (1 + within) * min(recent)
