"""Why a GPU is not seen or its work not recorded: what the operating system tells about permissions and rivals."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torchdiag.capture.torch_probe import TorchFacts

_CAP_SYS_ADMIN: Final = 21
_CAP_PERFMON: Final = 38
_RIVALS: Final = ("nsys", "ncu", "nv-nsight-cu", "nvprof", "dcgm-exporter", "nv-hostengine", "dynolog", "rocprof")
_RIVAL_VARIABLES: Final = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID", "CUPTI_PATH")


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the operating system tells these things; other roots are for tests."""

    proc: Path = Path("/proc")
    dev: Path = Path("/dev")
    root: Path = Path("/")


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that can keep a GPU's work from being recorded, and what helps."""

    what: str
    fix: str


def why_no_device(facts: TorchFacts, machine: Machine = Machine()) -> tuple[str, str]:
    """Why torch sees no GPU though there is one, and what helps; two empty texts where there is none."""
    hidden = [
        f"{name}={os.environ[name]}"
        for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
        if os.environ.get(name) in {"", "-1", "NoDevFiles"}
    ]
    nvidia = (machine.proc / "driver/nvidia/version").is_file() or (machine.dev / "nvidia0").exists()
    amd = (machine.dev / "kfd").exists()
    wsl = (machine.dev / "dxg").exists()
    if not (nvidia or amd or wsl):
        return "", ""
    said = f" ({facts.trouble})" if facts.trouble else ""
    if hidden:
        return f"there is a GPU, but {hidden[0]} hides it", f"unset {hidden[0].partition('=')[0]}"
    if (nvidia or wsl) and facts.cuda is None:
        return "there is an NVIDIA GPU, but torch was built without CUDA", "install a CUDA build: https://pytorch.org"
    if amd and not nvidia and facts.hip is None:
        return "there is an AMD GPU, but torch was built without ROCm", "install a ROCm build: https://pytorch.org"
    if nvidia and not (machine.dev / "nvidia0").exists():
        return (
            f"the NVIDIA driver is loaded, but /dev/nvidia0 is not here{said}",
            "start the container with --gpus all (NVIDIA Container Toolkit)",
        )
    return f"there is a GPU, but torch cannot use it{said}", "update the driver to one that fits torch's CUDA version"


def obstacles(machine: Machine = Machine()) -> Iterator[Obstacle]:
    """What can be in the way of recording GPU events on this machine, likeliest first."""
    admin_only = _admin_only(machine)
    container = _container(machine)
    if admin_only and not _privileged(machine):
        yield Obstacle(
            "the NVIDIA driver keeps performance counters to administrators (RmProfilingAdminOnly: 1)",
            "put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/nvidia.conf and reboot; "
            + "or "
            + ("start the container with --cap-add=SYS_ADMIN" if container else "run as root"),
        )
    rivals = [*_rival_processes(machine), *(name for name in _RIVAL_VARIABLES if os.environ.get(name))]
    if rivals:
        yield Obstacle(
            f"another profiler may hold the GPU's counters: {', '.join(sorted(set(rivals)))}",
            "run without it: CUPTI serves one at a time",
        )
    if _wsl(machine):
        yield Obstacle(
            "this is WSL, where many driver versions record no GPU events",
            "update Windows, its NVIDIA driver and torch, or measure on Linux",
        )


def _admin_only(machine: Machine) -> bool:
    try:
        parameters = (machine.proc / "driver/nvidia/params").read_text()
    except OSError:
        return False
    return any(line.replace(" ", "") == "RmProfilingAdminOnly:1" for line in parameters.splitlines())


def _privileged(machine: Machine) -> bool:
    """Whether this process has the capability that the driver asks for."""
    try:
        status = (machine.proc / "self/status").read_text()
    except OSError:
        return False
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            mask = int(line.split()[1], 16)
            return bool(mask >> _CAP_SYS_ADMIN & 1 or mask >> _CAP_PERFMON & 1)
    return False


def _container(machine: Machine) -> bool:
    return (machine.root / ".dockerenv").exists() or (machine.root / "run/.containerenv").exists()


def _wsl(machine: Machine) -> bool:
    try:
        return "microsoft" in (machine.proc / "version").read_text().lower()
    except OSError:
        return False


def _rival_processes(machine: Machine) -> Iterator[str]:
    for comm in machine.proc.glob("[0-9]*/comm"):
        try:
            name = comm.read_text().strip()
        except OSError:
            continue
        if name in _RIVALS:
            yield name
