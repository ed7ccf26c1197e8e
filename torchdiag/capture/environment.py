"""What is written down about the machine and the software of a run."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# torch leaves parts of its own signatures untyped.

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from torchdiag.capture import gpus
from torchdiag.history.run_result import Environment

if TYPE_CHECKING:
    import torch

_PACKAGES: Final = ("torch", "torchvision", "transformers", "triton", "numpy", "lightning", "accelerate")
_THREAD_VARIABLES: Final = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "TORCH_BLAS_PREFER_CUBLASLT",
)
_GIT_SECONDS: Final = 5.0


def without_torch(folder: Path) -> Environment:
    """What can be said without importing torch; `folder` is the target's, for its git commit."""
    commit, changed = _git(folder)
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        packages=_packages(),
        cpu=_cpu(),
        cpu_count=os.cpu_count(),
        usable_cpus=_usable_cpus(),
        memory_bytes=_memory_bytes(),
        thread_variables={name: os.environ[name] for name in _THREAD_VARIABLES if name in os.environ},
        git_commit=commit,
        git_changed=changed,
    )


def describe(device: torch.device, known: Environment | None = None) -> Environment:
    """What torch says at this moment, with what is `known` already (else from the current folder)."""
    import torch  # noqa: PLC0415 - so that the command line starts without torch

    base = known or without_torch(Path.cwd())
    backends: Any = torch.backends
    cuda = device.type == "cuda"
    return msgspec.structs.replace(
        base,
        torch=str(torch.__version__),
        cuda=torch.version.cuda,
        hip=getattr(torch.version, "hip", None),
        cudnn=int(backends.cudnn.version()) if cuda and backends.cudnn.is_available() else None,
        driver=gpus.driver() if cuda else None,
        device=str(device),
        gpus=gpus.describe() if cuda else (),
        threads=torch.get_num_threads(),
        interop_threads=torch.get_num_interop_threads(),
        matmul_precision=torch.get_float32_matmul_precision(),
        matmul_tf32=_flag(lambda: backends.cuda.matmul.allow_tf32),
        cudnn_tf32=_flag(lambda: backends.cudnn.allow_tf32),
        cudnn_benchmark=bool(backends.cudnn.benchmark),
        cudnn_deterministic=bool(backends.cudnn.deterministic),
        deterministic_algorithms=torch.are_deterministic_algorithms_enabled(),
        anomaly_mode=torch.is_anomaly_enabled(),
    )


def _flag(read: Any) -> bool | None:
    try:
        return bool(read())
    except RuntimeError:
        # Torch refuses the old spelling of these flags to programs that used the new one.
        return None


def _packages() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Hardware", "cpu model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _usable_cpus() -> int | None:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _git(folder: Path) -> tuple[str | None, bool | None]:
    """The commit of the repository around a folder, and whether files it tracks were changed since."""
    if shutil.which("git") is None:
        return None, None
    commit = _run_git(folder, "rev-parse", "HEAD")
    if not commit:
        return None, None
    status = _run_git(folder, "status", "--porcelain", "--untracked-files=no")
    return commit.strip(), None if status is None else bool(status.strip())


def _run_git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_GIT_SECONDS,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
