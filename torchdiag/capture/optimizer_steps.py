"""Optimizer steps as step borders, through torch's hook that all optimizers call."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# torch leaves parts of its own signatures untyped.

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Final
from weakref import ref

_FORGOTTEN: Final = 8


class _Depth(threading.local):
    """How many of this thread's calls of an optimizer's `step` are under way, and whether one of them ends a step."""

    calls: int = 0
    pending: bool = False


class OptimizerSteps:
    """Calls `tick` after the optimizer step that closes a step of the program.

    Where a program has several optimizers, that is a step of the one that showed up last: generator and discriminator
    make one step together. Once `locked()` nothing is reconsidered, unless the closing optimizer is used no more.
    """

    def __init__(self, tick: Callable[[], None], locked: Callable[[], bool]) -> None:
        self._tick = tick
        self._locked = locked
        self._known: list[ref[Any]] = []
        self._since = 0
        self._usual = 1
        self._depth = _Depth()
        self._handle: Any = None
        self._compiling: Callable[[], bool] = bool
        self._original: Any = None
        self.made = False
        """Whether the program has an optimizer."""

    def install(self) -> None:
        """Hook into torch's optimizers. Torch has been imported."""
        import torch  # noqa: PLC0415 - so that the command line starts without torch
        from torch.optim import Optimizer  # noqa: PLC0415
        from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: PLC0415

        # Where a program compiles its optimizer's step, the compiler must not compile what happens at a border.
        uncompiled: Callable[[Any], Any] = getattr(torch, "_disable_dynamo", lambda function: function)
        self._compiling = torch.compiler.is_compiling

        tick = self._tick

        def border() -> None:
            tick()

        self._tick = uncompiled(border)

        def hook(optimizer: Any, args: Any, kwargs: Any) -> None:
            self._stepped(optimizer)

        self._handle = register_optimizer_step_post_hook(uncompiled(hook))
        # The hook is called inside the optimizer's own mark in the trace. A border there would cut it in two, so it is
        # put off until the call of `step` returns, wherever that call goes through the wrapper made here.
        self._original = getattr(Optimizer, "profile_hook_step", None)
        if self._original is not None:
            Optimizer.profile_hook_step = staticmethod(self._wrapping(self._original))

    def remove(self) -> None:
        """Take the hooks away; wrappers made meanwhile pass on and do nothing else."""
        if self._handle is None:
            return
        from torch.optim import Optimizer  # noqa: PLC0415

        self._handle.remove()
        self._handle = None
        if self._original is not None:
            Optimizer.profile_hook_step = staticmethod(self._original)

    def _wrapping(self, original: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
        def profile_hook_step(function: Callable[..., Any]) -> Callable[..., Any]:
            self.made = True
            inner = original(function)

            @wraps(inner)
            def step(*args: Any, **kwargs: Any) -> Any:
                if self._compiling():
                    return inner(*args, **kwargs)
                depth = self._depth
                depth.calls += 1
                try:
                    return inner(*args, **kwargs)
                finally:
                    depth.calls -= 1
                    if depth.pending and not depth.calls:
                        depth.pending = False
                        self._tick()

            return step

        return profile_hook_step

    def _stepped(self, optimizer: Any) -> None:
        if self._handle is None or not self._closes(optimizer):
            return
        if self._depth.calls:
            self._depth.pending = True
        else:
            self._tick()

    def _closes(self, optimizer: Any) -> bool:
        self.made = True
        self._since += 1
        known = [item() for item in self._known]
        if not any(item is optimizer for item in known):
            self._known = [item for item in self._known if item() is not None]
            forgotten = self._since > _FORGOTTEN * self._usual
            # Appended, it closes; a newcomer while steps are being measured does not.
            if not self._known or not self._locked() or forgotten:
                self._known.append(ref(optimizer))
            else:
                self._known.insert(0, ref(optimizer))
        elif self._since > _FORGOTTEN * self._usual:
            self._known = [*(item for item in self._known if item() is not optimizer), ref(optimizer)]
        if self._known[-1]() is not optimizer:
            return False
        self._usual = max(self._usual, self._since)
        self._since = 0
        return True
