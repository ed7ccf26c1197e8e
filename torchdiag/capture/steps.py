"""Where the steps of a program that knows nothing of this are: `step()`, and what is watched to find them without it.

In this order, the first that there is: steps of an optimizer (a global hook of torch's), iterations of a DataLoader,
calls of `torchdiag.step()`, and, where none of these come, stretches of time.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

from torchdiag.capture.after_import import after_import
from torchdiag.capture.loader_steps import LoaderSteps
from torchdiag.capture.optimizer_steps import OptimizerSteps
from torchdiag.history.run_result import StepSource

_ORDER: Final[tuple[StepSource, ...]] = ("optimizer", "dataloader", "step()", "time")
_UNFOUND_S: Final = 30.0
_WINDOW_S: Final = 1.0
_EVALUATION_STEPS: Final = 100
"""So many iterations of a DataLoader are waited for the first step of an optimizer that was made but does not step."""

_finder: StepFinder | None = None


def step() -> None:
    """A step is over, the next one begins: for programs whose steps `torchdiag profile` cannot find by itself.

    Does nothing, and costs nothing, where the program is not being profiled.
    """
    if _finder is not None:
        _finder.tick("step()")


class StepFinder:
    """Calls `border` whenever a step of the program is over, on the one thread where the first one was.

    `on_source` is called where the first step begins, with what kind of step it is, and again where a better kind shows
    up, unless `locked()`: steps are being measured. What these functions raise goes through the program.
    """

    def __init__(
        self,
        border: Callable[[], None],
        *,
        locked: Callable[[], bool],
        on_source: Callable[[StepSource], None],
        seconds: float | None,
    ) -> None:
        self._border = border
        self._locked = locked
        self._on_source = on_source
        self._seconds = seconds
        self._owner = os.getpid()
        self._thread: int | None = None
        self._inside = False
        self._loader_ticks = 0
        self._optimizers = OptimizerSteps(lambda: self.tick("optimizer"), locked)
        self._loaders = LoaderSteps(lambda: self.tick("dataloader"))
        self.source: StepSource | None = None

    def install(self) -> None:
        """Watch from now on, torch's steps from when the program imports it. The main thread must call."""
        global _finder  # noqa: PLW0603 - `step()` has to find it
        _finder = self
        if self._seconds is None:
            after_import("torch", self._install_hooks)
        self._await_windows()

    def _install_hooks(self) -> None:
        if _finder is self:
            self._optimizers.install()
            self._loaders.install()

    def remove(self) -> None:
        """Watch no more."""
        global _finder  # noqa: PLW0603
        _finder = None
        self._optimizers.remove()
        self._loaders.remove()
        if self.source == "time" or self._waiting:
            self._alarm(0.0)

    def tick(self, source: StepSource) -> None:
        """Something that may be a step of this kind is over."""
        if os.getpid() != self._owner or self._inside:
            return
        if self.source is None or (source != self.source and not self._locked()):
            if not self._accepts(source):
                return
            self.source = source
            self._thread = threading.get_ident()
            if source != "time":
                self._stop_waiting()
            # What came before is no step: the first one begins here.
            self._inside = True
            try:
                self._on_source(source)
            finally:
                self._inside = False
            return
        if source != self.source or threading.get_ident() != self._thread:
            return
        self._inside = True
        try:
            self._border()
        finally:
            self._inside = False

    def _accepts(self, source: StepSource) -> bool:
        if self.source is not None and _ORDER.index(source) > _ORDER.index(self.source):
            return False
        if source == "dataloader" and self._optimizers.made:
            # Perhaps a look at the validation data before the training begins.
            self._loader_ticks += 1
            return self._loader_ticks > _EVALUATION_STEPS
        return True

    # Stretches of time: only the signal's handler runs on the main thread whatever that is doing.

    _waiting = False

    def _await_windows(self) -> None:
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            return
        self._waiting = True
        signal.signal(signal.SIGALRM, self._rang)
        self._alarm(self._seconds or _UNFOUND_S)

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting = False
            self._alarm(0.0)

    def _rang(self, number: int, frame: FrameType | None) -> None:
        if _finder is not self:
            return
        if not _torch_is_there():
            self._alarm(self._seconds or _UNFOUND_S)
            return
        self._waiting = False
        self.tick("time")
        if _finder is self and self.source == "time":
            self._alarm(self._seconds or _WINDOW_S)

    def _alarm(self, seconds: float) -> None:
        if hasattr(signal, "setitimer") and os.getpid() == self._owner:
            signal.setitimer(signal.ITIMER_REAL, seconds)


def _torch_is_there() -> bool:
    """Whether the program has imported torch, to its end."""
    torch = sys.modules.get("torch")
    return torch is not None and not getattr(torch.__spec__, "_initializing", False)
