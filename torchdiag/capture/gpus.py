"""What NVIDIA's tools say about the GPUs: driver, clocks, and who else is on them. All of it may be missing."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# torch leaves parts of its own signatures untyped.

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from torchdiag.history.run_result import Gpu

_SECONDS: Final = 10.0
_FIELDS: Final = (
    "uuid",
    "driver_version",
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "power.limit",
    "temperature.gpu",
)


@cache
def processes() -> tuple[tuple[str, str], ...] | None:
    """The processes on the GPUs when this was first asked: each one's GPU, and `pid name MiB`. None if unknown.

    Asked before this process has used a GPU, it names the others alone, also where pids are those of a container.
    """
    rows = _query("compute-apps", ("gpu_uuid", "pid", "process_name", "used_memory"))
    if rows is None:
        return None
    return tuple((_bare(row[0]), " ".join(row[1:])) for row in rows if row[1] != str(os.getpid()))


def driver() -> str | None:
    """The version of the NVIDIA driver."""
    rows = _query("gpu", _FIELDS)
    return rows[0][1] if rows else None


def describe() -> tuple[Gpu, ...]:
    """The GPUs that torch sees, with what `nvidia-smi` knows of each (matched by its identity, not its number)."""
    import torch  # noqa: PLC0415 - so that the command line starts without torch

    known = {_bare(row[0]): row for row in _query("gpu", _FIELDS) or ()}
    running = processes()
    found: list[Gpu] = []
    for index in range(torch.cuda.device_count()):
        properties: Any = torch.cuda.get_device_properties(index)
        identity = _bare(str(getattr(properties, "uuid", "")))
        row = known.get(identity)
        others: tuple[str, ...] | None = None
        if row is not None and running is not None:
            others = tuple(process for gpu, process in running if gpu == identity)
        numbers = [_number(text) for text in row[2:]] if row is not None else [None] * 5
        found.append(
            Gpu(
                index=index,
                name=str(properties.name),
                memory_bytes=int(properties.total_memory),
                compute_capability=f"{properties.major}.{properties.minor}",
                multiprocessors=int(properties.multi_processor_count),
                sm_clock_mhz=_whole(numbers[0]),
                max_sm_clock_mhz=_whole(numbers[1]),
                memory_clock_mhz=_whole(numbers[2]),
                power_limit_w=numbers[3],
                temperature_c=_whole(numbers[4]),
                other_processes=others,
            )
        )
    return tuple(found)


def _query(what: str, fields: Sequence[str]) -> list[list[str]] | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]
    return [row for row in rows if len(row) == len(fields)]


def _bare(identity: str) -> str:
    return identity.removeprefix("GPU-").lower()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)
