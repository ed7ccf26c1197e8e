"""One session of torch's profiler that harms nobody: warm-up, recording, export, all at step borders of one thread.

A profiler that is active already belongs to somebody else and is left alone (`ProfilerBusyError`). When somebody else
starts theirs during this session, this one makes room: its recording is given up, theirs begins as if it were alone.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# torch leaves parts of its own signatures untyped.

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    import torch

State = Literal["warm-up", "recording", "exported", "given up"]

_ENTRIES: Final = ("_prepare_profiler", "_enable_profiler")
_LITTLE_SPACE_BYTES: Final = 16 << 20
_sessions_started = 0


def sessions_started() -> int:
    """How many sessions this process has started through here; before the first one Kineto has not been touched."""
    return _sessions_started


def somebody_profiles() -> bool:
    """Whether a profiler of torch is active on this thread, of whichever API."""
    import torch  # noqa: PLC0415 - so that the command line starts without torch

    return bool(torch.autograd._profiler_enabled())  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]


class ProfilerBusyError(Exception):
    """A profiler is active already: the target's own, or a tool's that runs it."""


class Session:
    """Records `active` steps after `warmup` steps (at least one), then exports them to `path` as plain JSON.

    `start()` begins the first warm-up step, each `step()` ends one step and begins the next; after the last one the
    state is `exported` and the profiler is off. All on one thread, in the process that started it: calls from a forked
    child do nothing.
    """

    def __init__(
        self,
        path: Path,
        device: torch.device,
        *,
        active: int,
        warmup: int = 1,
        shapes: bool = False,
        stacks: bool = False,
        memory: bool = False,
    ) -> None:
        if warmup < 1 or active < 1:
            raise ValueError("a session needs at least one warm-up step and one recorded step")
        self.path = path
        self.state: State = "warm-up"
        self.recorded = 0
        self._warmup = warmup
        self._active = active
        self._steps = 0
        self._owner = (os.getpid(), threading.get_ident())
        self._profiler: Any = _profiler(device, self._action, self._export, shapes=shapes, stacks=stacks, memory=memory)
        self._originals: dict[str, Any] = {}
        self._inside = False

    @property
    def whole_steps(self) -> int:
        """The recorded steps that are over."""
        return max(0, self._steps - self._warmup)

    @property
    def last_warmup_step(self) -> bool:
        """Whether the step in progress is the last before the recorded ones."""
        return self.state == "warm-up" and self._steps == self._warmup - 1

    @property
    def last_step(self) -> bool:
        """Whether the step in progress is the last recorded one."""
        return self.whole_steps == self._active - 1

    def start(self) -> None:
        """Begin. Raises `ProfilerBusyError` where another profiler is active, RuntimeError for what torch refuses."""
        global _sessions_started  # noqa: PLW0603 - a fact about the process
        if somebody_profiles():
            raise ProfilerBusyError
        _sessions_started += 1
        self._owner = (os.getpid(), threading.get_ident())
        self._make_room_for_others()
        try:
            self._within(self._profiler.start)
        except BaseException:
            self._restore()
            raise

    def step(self) -> None:
        """A step is over, the next one begins."""
        if not self._ours or self.state not in ("warm-up", "recording"):
            return
        self._steps += 1
        try:
            self._within(self._profiler.step)
        except BaseException:
            self.give_up()
            raise
        if self._steps == self._warmup:
            self.state = "recording"
        elif self._steps == self._warmup + self._active:
            self.recorded = self._active
            self._close("exported")

    def stop_early(self) -> None:
        """End it now and export the whole steps recorded so far, if there are any; else give it up."""
        whole = self.whole_steps
        if not self._ours or self.state != "recording" or whole < 1:
            self.give_up()
            return
        self.recorded = whole
        self._within(self._profiler.stop)
        self._close("exported")

    def give_up(self) -> None:
        """End it without a trace. Never raises: whatever goes on around it matters more."""
        if not self._ours or self.state in ("exported", "given up"):
            return
        self._profiler.on_trace_ready = None
        # Torch raises for a profiler that is off already, which is what is wanted.
        with contextlib.suppress(Exception):
            self._within(self._profiler.stop)
        self._close("given up")

    @property
    def _ours(self) -> bool:
        return self._owner == (os.getpid(), threading.get_ident())

    def _close(self, state: State) -> None:
        self.state = state
        self._restore()
        # The profiler holds every event of the session.
        self._profiler = None

    def _action(self, step: int) -> Any:
        from torch.profiler import ProfilerAction  # noqa: PLC0415

        if step < self._warmup:
            return ProfilerAction.WARMUP
        last = self._warmup + self._active - 1
        if step < last:
            return ProfilerAction.RECORD
        return ProfilerAction.RECORD_AND_SAVE if step == last else ProfilerAction.NONE

    def _export(self, profiler: Any) -> None:
        # While the profiler is still the one that recorded: later its events are gone.
        profiler.export_chrome_trace(str(self.path))
        if not self.path.is_file():
            # Kineto only logs that it could not write, and leaves its part under another name.
            free = shutil.disk_usage(self.path.parent).free
            code = errno.ENOSPC if free < _LITTLE_SPACE_BYTES else errno.EIO
            raise OSError(code, os.strerror(code), str(self.path.parent))

    def _within(self, call: Callable[[], None]) -> None:
        self._inside = True
        try:
            call()
        finally:
            self._inside = False

    def _make_room_for_others(self) -> None:
        from torch.autograd import profiler as legacy  # noqa: PLC0415

        def giving_way(original: Callable[..., Any]) -> Callable[..., Any]:
            def entry(*args: Any, **kwargs: Any) -> Any:
                if not self._inside and self._ours:
                    self.give_up()
                return original(*args, **kwargs)

            return entry

        for name in _ENTRIES:
            original = getattr(legacy, name, None)
            if original is not None:
                self._originals[name] = original
                setattr(legacy, name, giving_way(original))

    def _restore(self) -> None:
        from torch.autograd import profiler as legacy  # noqa: PLC0415

        for name, original in self._originals.items():
            setattr(legacy, name, original)
        self._originals.clear()


def _profiler(
    device: torch.device,
    schedule: Callable[[int], Any],
    ready: Callable[[Any], None],
    *,
    shapes: bool,
    stacks: bool,
    memory: bool,
) -> Any:
    from torch.profiler import ProfilerActivity, profile  # noqa: PLC0415

    # The CPU always: device records without the launches that lead to them say little, and some versions lose them.
    activities = [ProfilerActivity.CPU]
    accelerator = getattr(ProfilerActivity, device.type.upper(), None) if device.type != "cpu" else None
    if accelerator is not None:
        activities.append(accelerator)
    return profile(
        activities=activities,
        schedule=schedule,
        on_trace_ready=ready,
        record_shapes=shapes,
        with_stack=stacks,
        profile_memory=memory,
        experimental_config=_experimental(stacks=stacks),
    )


def _experimental(*, stacks: bool) -> Any:
    """The options this version has: no Python objects of events (nobody reads them), collections among the stacks."""
    from torch._C import _profiler  # noqa: PLC0415 - torch is imported late

    config: Any = _profiler._ExperimentalConfig  # pyright: ignore[reportPrivateUsage]

    known = config.__init__.__doc__ or ""
    # Stacks need those objects.
    wanted = {"record_python_gc_info": True} if stacks else {"trace_only": True}
    return config(**{name: value for name, value in wanted.items() if f"{name}:" in known})
