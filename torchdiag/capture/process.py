"""A child process that cannot harm its parent: its output is kept, bounded, and it ends when it should."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

_TAIL_BYTES: Final = 1 << 16
_MOST_BYTES: Final = 64 << 20
_GRACE_S: Final = 5.0
_DRAIN_S: Final = 1.0
_TICK_S: Final = 0.1
_CHUNK: Final = 1 << 16


@dataclass(slots=True)
class Ended:
    """How a child ended. `returncode` as `subprocess` has it; `log_error` says why the output could not be kept.

    `tail` is the end of its output; where it was asked at the timeout where it hangs, `stacks` is what came after that.
    """

    returncode: int = 0
    timed_out: bool = False
    interrupted: bool = False
    tail: bytes = b""
    stacks: bytes = b""
    log_error: str = ""
    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class Child:
    """Runs a command in a session of its own, its standard output and error in one log, with a pipe for its lines."""

    def __init__(
        self, log: Path, on_line: Callable[[dict[str, Any]], None], *, timeout_s: float | None, runs_on: bool
    ) -> None:
        """`runs_on`: the child may take its time after it has said that its passes are done."""
        self._log = log
        self._on_line = on_line
        self._timeout_s = timeout_s
        self._runs_on = runs_on
        self._ended = Ended()
        self._written = 0
        self._rest = b""
        self._file: BinaryIO | None = None
        self._finished_at: float | None = None

    def run(self, command_for: Callable[[int], Sequence[str]], environment: dict[str, str]) -> Ended:
        """Run `command_for(descriptor of the pipe)` to its end, or to the timeout's or the user's.

        Ctrl-C is the child's first: it is told, and given some seconds to hand over what it has. Whatever the child
        leaves running in its session is ended with it.
        """
        reading, writing = os.pipe()
        os.set_inheritable(writing, True)
        try:
            with contextlib.suppress(OSError):
                self._file = self._log.open("wb")
            process = subprocess.Popen(
                command_for(writing),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=(writing,),
                start_new_session=True,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        try:
            self._follow(process, reading)
        finally:
            _kill_group(process.pid)
            process.wait()
            os.close(reading)
            if process.stdout is not None:
                process.stdout.close()
            if self._file is not None:
                self._close_log()
        self._ended.returncode = process.returncode
        return self._ended

    def _follow(self, process: subprocess.Popen[bytes], reading: int) -> None:
        selector = selectors.DefaultSelector()
        output = process.stdout
        assert output is not None
        os.set_blocking(output.fileno(), False)
        os.set_blocking(reading, False)
        selector.register(output.fileno(), selectors.EVENT_READ, self._take_output)
        selector.register(reading, selectors.EVENT_READ, self._take_lines)
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        kill_at: float | None = None
        gone_at: float | None = None
        while selector.get_map():
            try:
                for key, _ in selector.select(_TICK_S):
                    if not key.data(key.fd):
                        selector.unregister(key.fd)
                now = time.monotonic()
                if process.poll() is not None:
                    gone_at = gone_at or now
                    # A process it has left behind may hold the pipes open for ever.
                    if now - gone_at > _DRAIN_S:
                        break
                elif kill_at is not None and now > kill_at:
                    _kill_group(process.pid)
                elif deadline is not None and now > deadline and kill_at is None:
                    self._ended.timed_out = True
                    self._ask_where(process)
                    kill_at = self._tell(process)
                elif self._lingers(now) and kill_at is None:
                    kill_at = self._tell(process)
            except KeyboardInterrupt:
                if self._ended.interrupted:
                    _kill_group(process.pid)
                self._ended.interrupted = True
                kill_at = self._tell(process)
        selector.close()

    def _lingers(self, now: float) -> bool:
        return self._finished_at is not None and not self._runs_on and now - self._finished_at > 6 * _GRACE_S

    def _ask_where(self, process: subprocess.Popen[bytes]) -> None:
        """At the timeout: where all threads are, as `faulthandler` prints it into the output."""
        output = process.stdout
        if output is None or not hasattr(signal, "SIGUSR1"):
            return
        self._drain(output.fileno())
        before = self._ended.tail
        self._ended.tail = b""
        _send(process.pid, signal.SIGUSR1)
        time.sleep(_TICK_S)
        self._drain(output.fileno())
        self._ended.stacks, self._ended.tail = self._ended.tail, before

    def _drain(self, descriptor: int) -> None:
        # A bounded number of times: a target may print faster than it is read.
        for _ in range(_MOST_BYTES // _CHUNK):
            chunk = _read(descriptor)
            if not chunk:
                return
            self._take(chunk)

    def _tell(self, process: subprocess.Popen[bytes]) -> float:
        _send(process.pid, signal.SIGINT)
        return time.monotonic() + _GRACE_S

    def _take_output(self, descriptor: int) -> bool:
        chunk = _read(descriptor)
        if chunk is None:
            return True
        self._take(chunk)
        return bool(chunk)

    def _take(self, chunk: bytes) -> None:
        self._ended.tail = (self._ended.tail + chunk)[-_TAIL_BYTES:]
        self._keep(chunk)

    def _keep(self, chunk: bytes) -> None:
        if self._file is None or self._written > _MOST_BYTES:
            return
        self._written += len(chunk)
        try:
            self._file.write(chunk)
            if self._written > _MOST_BYTES:
                self._file.write(f"\n[torchdiag: output beyond {_MOST_BYTES >> 20} MiB is not kept]\n".encode())
            self._file.flush()
        except OSError as error:
            self._ended.log_error = error.strerror or str(error)
            self._close_log()

    def _close_log(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with contextlib.suppress(OSError):
                file.close()

    def _take_lines(self, descriptor: int) -> bool:
        chunk = _read(descriptor)
        if chunk is None:
            return True
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        for text in whole:
            line: dict[str, Any] = json.loads(text)
            if line.get("passes") == "done":
                self._finished_at = time.monotonic()
            self._ended.lines.append(line)
            self._on_line(line)
        return bool(chunk)


def _read(descriptor: int) -> bytes | None:
    """What is there; empty at the end, None where nothing is there yet."""
    try:
        return os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return None


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _kill_group(pid: int) -> None:
    # The session's processes have the child's number as their group's; it stays taken while one of them lives.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def python_command(module: str, arguments: Sequence[str], root: Path) -> list[str]:
    """The command that runs `module.main()` of the package in `root`, with nothing of the current folder in its way."""
    code = f"import sys; sys.path.insert(0, sys.argv.pop(1)); from {module} import main; del sys.path[0]; main()"
    return [sys.executable, "-P", "-c", code, str(root), *arguments]
