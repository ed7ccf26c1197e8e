"""Steps under torch's profiler: the light and the detailed pass."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torchdiag.capture import device as devices
from torchdiag.capture import kineto, trace_file
from torchdiag.capture.beside import CHEAP_EXCEPTIONS, Beside
from torchdiag.capture.passes import Stage
from torchdiag.capture.timing import StepTimer
from torchdiag.capture.tracks import Event
from torchdiag.errors import TorchdiagError
from torchdiag.history.profile_options import ProfileOptions
from torchdiag.history.run_result import DETAIL, TRACE, PassResult

_PATIENCE_STEPS: Final = 50
_MOST_TRIES: Final = 3
_LITTLE_SPACE_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class _Recording:
    """An exported session: its plain file, the times of the recorded steps, what was recorded beside it."""

    path: Path
    steps: int
    timer: StepTimer
    beside: Beside | None


class Profiled:
    """The light pass, or the detailed one (with shapes and stacks).

    The first step is recorded alone: it tells how large the trace of a step is, and so how many of the steps wanted fit
    into the limit on traces. Where one is enough, or all that fits, that is the trace, else a second session records
    them.
    The light pass has the cheap recorders beside it.
    """

    def __init__(self, options: ProfileOptions, *, detailed: bool, steps: int | None = None) -> None:
        self._options = options
        self._detailed = detailed
        self._wanted = steps or (options.detailed_steps if detailed else options.light_steps)
        self._active = 1
        self._session: kineto.Session | None = None
        self._timer: StepTimer | None = None
        self._beside: Beside | None = None
        self._recording: _Recording | None = None
        self._over = False
        self._waited = 0
        self._tries = 0
        self._sessions = 0
        self._notes: list[str] = []

    def begin(self, stage: Stage) -> None:
        """See `Pass`."""
        self._stage = stage
        self._wall_ns = time.time_ns()
        self._open()

    def _open(self) -> None:
        """Begin a session, or leave `_session` at None where somebody else's profiler is active."""
        self._sessions += 1
        name = "detailed" if self._detailed else "light"
        session = kineto.Session(
            self._stage.hand_over.folder / f".{name}-{self._sessions}-{os.getpid()}.kineto.json",
            self._stage.device,
            active=self._active,
            shapes=self._detailed,
            stacks=self._detailed and self._options.stack,
            memory=self._detailed and self._options.memory,
        )
        try:
            session.start()
        except kineto.ProfilerBusyError:
            return
        except (RuntimeError, ValueError) as error:
            self._failed(error)
            return
        self._session = session
        self._timer = StepTimer(self._stage.device)

    def border(self) -> bool:
        """See `Pass`."""
        try:
            return self._over or self._border()
        except (RuntimeError, ValueError) as error:
            self._failed(error)
            return True

    def _failed(self, error: Exception) -> None:
        self._over = True
        self._notes.append(f"torch's profiler failed: {error}")

    def _border(self) -> bool:
        session = self._session
        if session is None:
            return self._wait()
        self._step_is_over(session)
        session.step()
        match session.state:
            case "recording":
                if self._timer is not None:
                    self._timer.resume()
                return False
            case "exported":
                return self._exported(session)
            case "given up":
                return self._made_room()
            case "warm-up":
                return False

    def _wait(self) -> bool:
        self._waited += 1
        if self._waited > _PATIENCE_STEPS:
            self._notes.append(
                "another torch profiler was active all the time, the target's own it seems, and two cannot record at "
                "once: switch it off, or let it end earlier"
            )
            return True
        self._open()
        return False

    def _made_room(self) -> bool:
        self._stop_beside()
        self._session = None
        self._tries += 1
        if self._tries < _MOST_TRIES:
            return False
        self._notes.append(
            "the target started a torch profiler of its own in the middle of the recording, which made room for it "
            "each time: switch it off"
        )
        return True

    def _step_is_over(self, session: kineto.Session) -> None:
        if session.state == "recording" and self._timer is not None:
            self._timer.lap()
            if self._beside is not None:
                self._beside.step()
            if session.last_step:
                self._stop_beside()
        elif session.last_warmup_step:
            # So that every kernel in the trace has its launch there, and no wait of this tool's is in it.
            devices.synchronize(self._stage.device)
            if not self._detailed and self._options.exceptions:
                self._beside = Beside(exceptions=CHEAP_EXCEPTIONS)
                self._beside.start()

    def _exported(self, session: kineto.Session) -> bool:
        self._keep(session)
        if self._wanted == 1 or self._active > 1:
            return True
        size = max(1, session.path.stat().st_size)
        fitting = max(1, self._options.max_trace_mb * 1_000_000 // size)
        if fitting < self._wanted:
            self._notes.append(
                f"{fitting} of {self._wanted} steps recorded: the trace of one takes {size / 1e6:.0f} MB, and "
                f"{self._options.max_trace_mb} MB is the limit (--max-trace-mb)"
            )
        self._active = min(self._wanted, fitting)
        if self._active == 1:
            return True
        self._open()
        return False

    def _keep(self, session: kineto.Session) -> None:
        """The session's trace takes the place of an earlier one."""
        before = self._recording
        timer = self._timer or StepTimer(self._stage.device)
        self._recording = _Recording(session.path, session.recorded, timer, self._beside)
        self._session, self._timer, self._beside = None, None, None
        if before is not None:
            before.path.unlink(missing_ok=True)

    def _stop_beside(self) -> None:
        if self._beside is not None:
            self._beside.stop()

    def end(self, *, early: bool) -> None:
        """See `Pass`."""
        if early:
            self._end_early()
        recording = self._recording
        name = "detailed" if self._detailed else "light"
        if recording is None:
            note = "; ".join(self._notes) or "the target ended before a step was recorded"
            self._stage.hand_over.add_pass(PassResult(name=name, step_ns=(), started_ns=self._wall_ns, note=note))
            return
        file = DETAIL if self._detailed else TRACE
        try:
            self._write(recording, self._stage.hand_over.folder / file)
        finally:
            recording.path.unlink(missing_ok=True)
        device_step_ns = recording.timer.device_step_ns()
        done = PassResult(
            name=name,
            step_ns=tuple(recording.timer.step_ns),
            device_step_ns=None if device_step_ns is None else tuple(device_step_ns),
            started_ns=self._wall_ns,
            trace=file,
            recorded=recording.steps,
            note="; ".join(self._notes),
        )
        self._stage.hand_over.add_pass(done)

    def _end_early(self) -> None:
        self._stop_beside()
        session = self._session
        if session is not None:
            session.stop_early()
            if session.state == "exported":
                self._keep(session)
                self._notes.append("the target ended before all steps were recorded")

    def _write(self, recording: _Recording, target: Path) -> None:
        beside = recording.beside

        def events(base_ns: int) -> Sequence[Event]:
            return () if beside is None else beside.events(os.getpid(), base_ns)

        try:
            trace_file.finish(recording.path, target, events)
        except TorchdiagError:
            # Kineto does not say that it could not write everything.
            if shutil.disk_usage(target.parent).free < _LITTLE_SPACE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target)) from None
            raise
