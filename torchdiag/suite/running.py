"""Runs the runs of a suite, each in a process of its own; none of them can stop the others."""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final, Protocol

import msgspec

from torchdiag.capture.accelerators import Accelerators
from torchdiag.capture.process import python_command
from torchdiag.errors import TorchdiagError
from torchdiag.suite import memory_limit, other_python, outcome, skips
from torchdiag.suite.cases import Case
from torchdiag.suite.folder import SuiteFolder
from torchdiag.suite.outcome import Outcome
from torchdiag.suite.slots import Slot, Slots
from torchdiag.suite.worker_order import Order

LOG: Final = "worker.log"
"""What a worker said that is no outcome, in the run's folder; there only where it said something."""

_ROOT: Final = Path(__file__).parents[2]
_TICK_S: Final = 0.2
_GRACE_S: Final = 30.0
_BESIDES_S: Final = 300.0
"""What a worker may take besides its target's time: to start, to read the traces, to write."""
_MOST_BATCHES: Final = 18
_LONGEST_LINE: Final = 1 << 16


class Listener(Protocol):
    """Who is told how it goes."""

    def started(self, case: Case) -> None:
        """A run has begun."""
        ...

    def said(self, case: Case, text: str) -> None:
        """A run has come on, in words."""
        ...

    def ended(self, done: Outcome) -> None:
        """A run is over, or was not made."""
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """One run, and the suite's folder that it belongs to."""

    folder: SuiteFolder
    case: Case


@dataclass(slots=True)
class Ran:
    """What came of all: whether the user interrupted, and what could not be written."""

    interrupted: bool = False
    unwritten: str = ""


@dataclass(slots=True)
class _Worker:
    task: Task
    slot: Slot
    process: "subprocess.Popen[bytes]"
    log: IO[bytes]
    began: str
    deadline: float
    rest: bytes = b""
    timed_out: bool = False
    clock: float = field(default_factory=time.monotonic)


class Runner:
    """Runs tasks in order, `jobs` at a time."""

    def __init__(self, jobs: int, accelerators: Accelerators, listener: Listener) -> None:
        self._jobs = jobs
        self._slots = Slots(jobs, accelerators)
        self._listener = listener
        self._memory_bytes = memory_limit.default_bytes(jobs)
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._done: dict[Path, list[Outcome]] = {}
        self._ran = Ran()

    def run(self, tasks: Sequence[Task]) -> Ran:
        """Run them. Ctrl-C ends those that run, keeps what is done, and starts no more; once again kills them."""
        for task in tasks:
            self._done.setdefault(task.folder.path, task.folder.outcomes())
        waiting = list(tasks)
        stop_at: float | None = None
        try:
            while self._workers or (waiting and stop_at is None):
                try:
                    if stop_at is None:
                        self._start(waiting)
                    self._listen()
                    self._reap()
                    if stop_at is not None and time.monotonic() > stop_at:
                        self._kill()
                except KeyboardInterrupt:
                    if stop_at is not None:
                        self._kill()
                    stop_at = time.monotonic() + _GRACE_S
                    self._ran.interrupted = True
                    for worker in self._workers:
                        _send(worker.process.pid, signal.SIGINT)
        finally:
            self._kill()
            self._selector.close()
        return self._ran

    def _start(self, waiting: list[Task]) -> None:
        """Start the first that can run now, until none can."""
        place = 0
        while place < len(waiting):
            task = waiting[place]
            skipped = skips.reason(task.case) if not task.folder.plan.python else None
            if skipped is not None:
                del waiting[place]
                kind, message = skipped
                self._over(task, Outcome(case=task.case, status="skipped", began=_now(), kind=kind, message=message))
                continue
            slot = self._slots.take(task.case)
            if slot is None:
                place += 1
                continue
            del waiting[place]
            self._launch(task, slot)

    def _launch(self, task: Task, slot: Slot) -> None:
        case = task.case
        folder = task.folder.of(case)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            log = (folder / LOG).open("wb")
        except OSError as error:
            self._slots.give_back(slot)
            message = f"cannot write to {folder}: {error.strerror or error}"
            self._over(task, Outcome(case=case, status="failed", began=_now(), kind="disk", message=message))
            return
        order = Order(
            case=case,
            folder=str(folder.resolve()),
            device=slot.device,
            jobs=self._jobs,
            memory_bytes=case.memory_bytes or self._memory_bytes,
            parent=os.getpid(),
        )
        python = task.folder.plan.python
        process = subprocess.Popen(
            other_python.command(python) if python else python_command("torchdiag.suite.worker", [], _ROOT),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **slot.variables},
            # Ctrl-C is for this process, which passes it on.
            start_new_session=True,
        )
        trials = _MOST_BATCHES if case.options.batch_size == "tune" else 1
        deadline = time.monotonic() + trials * (case.options.timeout_s or 0.0) + _BESIDES_S
        worker = _Worker(task, slot, process, log, _now(), deadline)
        self._workers.append(worker)
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(msgspec.json.encode(order))
            process.stdin.close()
        os.set_blocking(process.stdout.fileno(), False)
        self._selector.register(process.stdout, selectors.EVENT_READ, worker)
        self._listener.started(case)

    def _listen(self) -> None:
        for key, _ in self._selector.select(_TICK_S):
            worker: _Worker = key.data
            chunk = os.read(key.fd, _LONGEST_LINE)
            if not chunk:
                self._selector.unregister(key.fileobj)
                continue
            *whole, worker.rest = (worker.rest + chunk).split(b"\n")
            worker.rest = worker.rest[-_LONGEST_LINE:]
            for line in whole:
                self._listener.said(worker.task.case, line.decode("utf-8", "replace"))

    def _reap(self) -> None:
        for worker in list(self._workers):
            if worker.process.poll() is not None:
                self._collect(worker)
            elif time.monotonic() > worker.deadline:
                worker.timed_out = True
                _kill_group(worker.process.pid)

    def _collect(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        _kill_group(worker.process.pid)
        assert worker.process.stdout is not None
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(worker.process.stdout)
        worker.process.stdout.close()
        worker.log.close()
        self._slots.give_back(worker.slot)
        folder = worker.task.folder.of(worker.task.case)
        log = folder / LOG
        with contextlib.suppress(OSError):
            if not log.stat().st_size:
                log.unlink()
        done: Outcome | None = None
        with contextlib.suppress(TorchdiagError):
            done = outcome.read(folder)
        self._over(worker.task, done or self._lost(worker, log))

    def _lost(self, worker: _Worker, log: Path) -> Outcome:
        """The outcome of a run whose worker left none."""
        code = worker.process.returncode
        if self._ran.interrupted:
            kind, message = "interrupted", "Interrupted."
        elif worker.timed_out:
            kind, message = "timeout", "Not over long after its time was up, so it was killed."
        else:
            how = f"was ended by {_signal_name(-code)}" if code < 0 else f"ended with code {code}"
            where = f"; {log} says more" if log.exists() else ""
            kind, message = "torchdiag", f"The process that measured it {how} without an outcome{where}."
        return Outcome(
            case=worker.task.case,
            status="interrupted" if kind == "interrupted" else "failed",
            began=worker.began,
            kind=kind,
            message=message,
            wall_s=round(time.monotonic() - worker.clock, 3),
            jobs=self._jobs,
        )

    def _over(self, task: Task, done: Outcome) -> None:
        others = [one for one in self._done[task.folder.path] if one.case.id != task.case.id]
        self._done[task.folder.path] = [*others, done]
        try:
            outcome.write(done, task.folder.of(task.case))
            task.folder.write_table(self._done[task.folder.path])
        except OSError as error:
            # The disk may have room again for the next one.
            self._ran.unwritten = f"{task.folder.path}: {error.strerror or error}"
        self._listener.ended(done)

    def _kill(self) -> None:
        for worker in list(self._workers):
            _kill_group(worker.process.pid)
            worker.process.wait()
            self._collect(worker)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
