"""Runs a command in a process of its own and says what it cost."""

import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """What one process took, its own children included: seconds by the clock and of CPU, and its largest memory."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    output: str


class FailedError(RuntimeError):
    """The command ended with an error, or its result was not what it should be."""


def run(command: list[str], *, folder: Path, environment: dict[str, str] | None = None) -> Cost:
    """Run `command` in `folder` to its end; raises `FailedError` with the end of its stderr unless it exits with 0.

    The kernel counts the memory of the process that starts a command towards the command's peak, until the command
    has more. The benchmark therefore keeps itself small: everything that needs memory happens in a child.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, stdout=stdout, stderr=stderr, env={**os.environ, **(environment or {})}
        )
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        stderr.seek(0)
        if process.returncode != 0:
            last = stderr.read().decode("utf-8", "replace").strip()[-600:]
            raise FailedError(f"exit {process.returncode}: {last}")
        output = stdout.read().decode("utf-8", "replace")
    return Cost(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, output)


def median(costs: list[Cost]) -> Cost:
    """The medians of each figure; the output is the last one's."""
    return Cost(
        statistics.median(cost.wall_s for cost in costs),
        statistics.median(cost.cpu_s for cost in costs),
        round(statistics.median(cost.peak_bytes for cost in costs)),
        costs[-1].output,
    )
