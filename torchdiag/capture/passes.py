"""The passes over a target's steps, one after the other, driven by nothing but its step borders.

Every pass begins and ends at a border. What happens there (starting a profiler, writing a trace) belongs to no step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from torchdiag.capture import device as devices
from torchdiag.capture import environment, kineto
from torchdiag.capture.clock import now_ns
from torchdiag.capture.hand_over import HandOver
from torchdiag.capture.timing import StepTimer, steady
from torchdiag.history.run_result import PassResult

if TYPE_CHECKING:
    import torch

_LEAST_WARMUP: Final = 3
_MOST_WARMUP: Final = 20
_MOST_WARMUP_NS: Final = 20_000_000_000
_TIMED_STEPS: Final = 20
_LEAST_TIMED: Final = 5
_MOST_TIMED_NS: Final = 15_000_000_000


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a pass plays: the device of its steps, and who takes what it measures."""

    device: torch.device
    hand_over: HandOver


class Pass(Protocol):
    """One pass. All calls come at step borders, on one thread."""

    def begin(self, stage: Stage) -> None:
        """The pass's first step begins when this returns."""
        ...

    def border(self) -> bool:
        """A step is over. False: the next one begins when this returns; True: the pass is over."""
        ...

    def end(self, *, early: bool) -> None:
        """Hand over what there is; `early`: the target ended, or failed, before the pass was over."""
        ...


class Passes:
    """Runs passes in order. `device_of` is asked at the beginning of each, since a script may come to use one late."""

    def __init__(self, passes: Sequence[Pass], hand_over: HandOver, device_of: Callable[[], torch.device]) -> None:
        self._left = list(passes)
        self._current: Pass | None = None
        self._hand_over = hand_over
        self._device_of = device_of
        self._described = False
        self.borders = 0

    @property
    def done(self) -> bool:
        """Whether every pass is over."""
        return self._current is None and not self._left

    @property
    def warming_up(self) -> bool:
        """Whether nothing has been measured yet."""
        return self._current is None or isinstance(self._current, WarmUp)

    def begin(self) -> None:
        """The first step begins when this returns."""
        self._next()

    def border(self) -> None:
        """A step is over; unless `done`, the next one begins when this returns."""
        self.borders += 1
        if self._current is not None and self._current.border():
            ended, self._current = self._current, None
            ended.end(early=False)
            self._next()

    def abandon(self) -> None:
        """No more steps will come: hand over what the pass in progress has."""
        current, self._current = self._current, None
        self._left.clear()
        if current is not None:
            current.end(early=True)

    def _next(self) -> None:
        if not self._left:
            return
        device = self._device_of()
        coming = self._left.pop(0)
        if not isinstance(coming, WarmUp) and not self._described:
            self._described = True
            # Here at the earliest the target has set the flags that are told of.
            self._hand_over.describe(environment=environment.describe(device))
        # The current one only after it has begun: what fails to begin is not to be ended.
        coming.begin(Stage(device, self._hand_over))
        self._current = coming


class WarmUp:
    """Steps that are left out: `steps` of them, or until three successive ones agree within 10 %.

    Where they do not, 20 steps or 20 seconds are enough.
    """

    def __init__(self, steps: int | None) -> None:
        self._steps = steps
        self._first_done_ns = 0

    def begin(self, stage: Stage) -> None:
        """See `Pass`."""
        self._stage = stage
        self._wall_ns = time.time_ns()
        self._timer = StepTimer(stage.device)
        self._timer.start()

    def border(self) -> bool:
        """See `Pass`."""
        # What the host is through with may be far ahead of the device; whether it is steady is the device's affair.
        devices.synchronize(self._stage.device)
        self._timer.lap()
        taken = self._timer.step_ns
        if len(taken) == 1:
            # The first step compiles, allocates and tunes; the time limit is for those after it.
            self._first_done_ns = now_ns()
        if self._steps is not None:
            return len(taken) >= self._steps
        late = len(taken) >= _MOST_WARMUP or now_ns() - self._first_done_ns > _MOST_WARMUP_NS
        return len(taken) >= _LEAST_WARMUP and (late or steady(taken))

    def end(self, *, early: bool) -> None:
        """See `Pass`."""
        taken = self._timer.step_ns
        settled = early or self._steps is not None or steady(taken)
        self._stage.hand_over.add_pass(
            PassResult(
                name="warm-up",
                step_ns=tuple(taken),
                started_ns=self._wall_ns,
                note="" if settled else f"step times had not settled after {len(taken)} steps",
            )
        )


class Timed:
    """Steps with nothing there that watches them: `steps`, or 20, or fewer (at least 5) where those take 15 seconds."""

    def __init__(self, steps: int | None) -> None:
        self._steps = steps

    def begin(self, stage: Stage) -> None:
        """See `Pass`."""
        # In a process of its own it comes before every session; in the user's there may have been another run.
        self._after_profiler = kineto.sessions_started() > 0
        self._stage = stage
        self._foreign = kineto.somebody_profiles()
        self._wall_ns = time.time_ns()
        self._began_ns = now_ns()
        devices.reset_peaks(stage.device)
        self._timer = StepTimer(stage.device)
        self._timer.start()

    def border(self) -> bool:
        """See `Pass`."""
        self._timer.lap()
        taken = len(self._timer.step_ns)
        if self._steps is not None:
            return taken >= self._steps
        return taken >= _TIMED_STEPS or (taken >= _LEAST_TIMED and now_ns() - self._began_ns > _MOST_TIMED_NS)

    def end(self, *, early: bool) -> None:
        """See `Pass`."""
        if not self._timer.step_ns:
            return
        device_step_ns = self._timer.device_step_ns()
        notes = ["the target ended before all steps were timed"] if early else []
        if self._after_profiler:
            notes.append("a profiler had recorded in this process before, and may have left something behind")
        if self._foreign or kineto.somebody_profiles():
            notes.append("the target's own profiler was running, so its cost is in these times")
        done = PassResult(
            name="timed",
            step_ns=tuple(self._timer.step_ns),
            device_step_ns=None if device_step_ns is None else tuple(device_step_ns),
            started_ns=self._wall_ns,
            note="; ".join(notes),
        )
        self._stage.hand_over.add_pass(done, memory=devices.memory(self._stage.device))
