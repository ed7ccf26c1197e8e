"""Runs a target in a child process and brings home what was measured, however that ends."""

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from torchdiag.capture import batch_size, child, environment, failures, hand_over, targets, throw_probe
from torchdiag.capture.process import Child, Ended, python_command
from torchdiag.capture.request import Request
from torchdiag.errors import TorchdiagError
from torchdiag.history.profile_options import ProfileOptions
from torchdiag.history.run_result import OUTPUT, PARTIAL, RESULT, Failure, RunResult, TuneResult, read, write

_TAIL_LINES = 20
_ROOT = Path(__file__).parents[2]

OnEvent = Callable[[str], None]


def run(options: ProfileOptions, folder: Path, *, on_event: OnEvent) -> RunResult:
    """Run a target through its passes and write the run folder: `result.json`, traces, `output.log`.

    `on_event` is told in words what has been done. Whatever the target does is told by the result's `status` and
    `failure`, not raised; an interruption by the user (Ctrl-C) too.

    Raises:
        TorchdiagError: a mistake of the user's: no such target or device, a package is missing, the folder cannot be
        written to.
    """
    targets.check(options)
    _make(folder)
    tuned: TuneResult | None = None
    if options.batch_size == "tune":
        if options.target_kind != "model":
            raise TorchdiagError("`--batch-size tune` is for suite models; a script sets its batch size itself.")

        def measure(size: int) -> RunResult:
            return _try_batch(options, size)

        tuned = batch_size.tune(measure, on_event=on_event)
        if tuned.chosen is None:
            result = _bare(options, tuned.points[-1].failure or failures.interrupted())
            return _written(msgspec.structs.replace(result, tune=tuned), folder)
        options = msgspec.structs.replace(options, batch_size=tuned.chosen)
    result = _measure(options, folder, on_event=on_event)
    return _written(msgspec.structs.replace(result, tune=tuned), folder)


def _try_batch(options: ProfileOptions, size: int) -> RunResult:
    steps = batch_size.STEPS if options.steps is None else min(options.steps, batch_size.STEPS)
    warmup = batch_size.WARMUP if options.warmup is None else options.warmup
    tried = msgspec.structs.replace(options, batch_size=size, steps=steps, warmup=warmup)
    with tempfile.TemporaryDirectory(prefix="torchdiag-tune-") as folder:
        return _measure(tried, Path(folder), on_event=lambda _: None, only_timed=True)


def _make(folder: Path) -> None:
    """Make the run folder, and find out now whether files can be written there. An earlier run in it is removed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        for old in (RESULT, PARTIAL, OUTPUT, "trace.json.gz", "detail.json.gz"):
            (folder / old).unlink(missing_ok=True)
    except OSError as error:
        raise TorchdiagError(
            f"cannot write to {folder}: {error.strerror or error}; name another with --out."
        ) from error


def _measure(options: ProfileOptions, folder: Path, *, on_event: OnEvent, only_timed: bool = False) -> RunResult:
    kills = failures.oom_kills()
    lines: dict[str, str] = {}

    def heard(line: dict[str, Any]) -> None:
        for kind, text in line.items():
            if kind == "say":
                on_event(text)
            else:
                lines.setdefault(kind, str(text))

    with tempfile.TemporaryDirectory(prefix="torchdiag-") as scratch:

        def command(pipe: int) -> list[str]:
            request = Request(
                options=options,
                folder=str(folder.resolve()),
                pipe=pipe,
                only_timed=only_timed,
                preload=os.environ.get("LD_PRELOAD"),
            )
            path = Path(scratch) / "request.json"
            path.write_bytes(msgspec.json.encode(request))
            return python_command("torchdiag.capture.child", [str(path)], _ROOT)

        process = Child(folder / OUTPUT, heard, timeout_s=options.timeout_s, runs_on=options.finish)
        ended = process.run(command, _variables(options))
    if "bug" in lines:
        raise RuntimeError("torchdiag failed inside the child process:\n" + lines["bug"])
    if "mistake" in lines:
        raise TorchdiagError(lines["mistake"])
    killed = failures.oom_kills() > kills
    return _brought_home(options, folder, ended, lines, out_of_memory=killed)


def _variables(options: ProfileOptions) -> dict[str, str]:
    variables = dict(os.environ)
    if options.exceptions:
        # Without the probe C++ exceptions are not counted, and the result says why.
        with contextlib.suppress(TorchdiagError):
            variables |= throw_probe.environment()
    return variables


def _brought_home(
    options: ProfileOptions, folder: Path, ended: Ended, lines: dict[str, str], *, out_of_memory: bool
) -> RunResult:
    """The child's partial result with what only the parent knows: how the process ended."""
    _sweep(folder)
    try:
        result = read(folder / PARTIAL)
    except TorchdiagError:
        result = _bare(options, None)
    with contextlib.suppress(OSError):
        (folder / PARTIAL).unlink(missing_ok=True)
    if result.status == "complete" and result.failure is None and not ended.interrupted:
        return result
    failure = _failure(options, ended, lines, result.failure, out_of_memory=out_of_memory)
    if failure is None:
        return result
    failure = msgspec.structs.replace(failure, output_tail=tail(ended.tail))
    return msgspec.structs.replace(result, failure=failure)


def _failure(
    options: ProfileOptions, ended: Ended, lines: dict[str, str], told: Failure | None, *, out_of_memory: bool
) -> Failure | None:
    if ended.timed_out and options.timeout_s is not None:
        traceback = told.traceback if told is not None else ""
        stacks = ended.stacks.decode("utf-8", "backslashreplace")
        return failures.of_timeout(options.timeout_s, traceback=traceback, stacks=stacks)
    if ended.interrupted:
        return told if told is not None and told.kind == "interrupted" else failures.interrupted()
    if "disk" in lines or ended.returncode == child.DISK:
        return Failure(kind="disk", message=lines.get("disk", "The disk failed."))
    if told is not None:
        return told
    if ended.returncode < 0:
        return failures.of_signal(-ended.returncode, out_of_memory=out_of_memory)
    return failures.of_exit(ended.returncode, options.target)


def _bare(options: ProfileOptions, failure: Failure | None) -> RunResult:
    result = hand_over.bare(options, environment.without_torch(Path.cwd()))
    return msgspec.structs.replace(result, failure=failure)


def _sweep(folder: Path) -> None:
    """Take away what a killed child left half made."""
    for pattern in (".*.part", ".*.kineto.json*", ".trace.json.gz.*.json"):
        for left in folder.glob(pattern):
            with contextlib.suppress(OSError):
                left.unlink()


def _written(result: RunResult, folder: Path) -> RunResult:
    try:
        write(result, folder / RESULT)
    except OSError as error:
        failure = result.failure or Failure(kind="disk", message="")
        message = f"{failure.message} The result could not be written to {folder}: {error.strerror or error}.".strip()
        status = "partial" if result.status == "complete" else result.status
        return msgspec.structs.replace(result, status=status, failure=msgspec.structs.replace(failure, message=message))
    return result


def tail(output: bytes, lines: int = _TAIL_LINES) -> str:
    """The last lines of an output, harmless on a terminal: what is no text is spelled out."""
    text = output.decode("utf-8", "backslashreplace")
    # A progress bar writes over its line again and again; what was last on it counts.
    kept = [line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").split("\n")]
    shown = [
        "".join(
            character if character.isprintable() or character == "\t" else ascii(character)[1:-1] for character in line
        )
        for line in kept
    ]
    # Kineto's own chatter.
    shown = [line for line in shown if not line.startswith("USDT:")]
    while shown and not shown[-1].strip():
        shown.pop()
    return "\n".join(line[:1000] for line in shown[-lines:])
