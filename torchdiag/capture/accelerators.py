"""Which accelerators torch sees, found out in a process of its own, so that this one need not import it."""

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from torchdiag.errors import TorchdiagError

_SECONDS: Final = 180.0
_NO_TORCH: Final = "torch is not installed here: run `pip install torch`."
_DEVICES: Final = ("nvidia*", "nvhost*", "nvmap", "kfd", "dxg", "dri/renderD*", "accel*")
"""What Linux calls the devices of NVIDIA, AMD, Intel, and of Windows below it."""

_ASK: Final = """
import torch
for kind in ("cuda", "xpu", "mps"):
    if kind == "mps":
        count = int(torch.backends.mps.is_available())
    else:
        module = getattr(torch, kind, None)
        count = module.device_count() if module is not None and module.is_available() else 0
    if count:
        break
else:
    kind, count = "cpu", 1
print("\\nfound", kind, count)
"""


@dataclass(frozen=True, slots=True)
class Accelerators:
    """The kind of the first that there is (`cuda`, `xpu`, `mps`, else `cpu`), and how many of it."""

    kind: str
    count: int


def find(python: str = sys.executable) -> Accelerators:
    """What the torch of a Python sees.

    Raises:
        TorchdiagError: there is no torch, or it cannot be imported.
    """
    if python == sys.executable and find_spec("torch") is None:
        raise TorchdiagError(_NO_TORCH)
    if _hidden() or not _any_device():
        # Torch takes seconds to import.
        return Accelerators("cpu", 1)
    try:
        done = subprocess.run([python, "-c", _ASK], capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TorchdiagError(f"cannot ask {python} for its torch: {error}") from error
    output = done.stdout.decode("utf-8", "replace").splitlines()
    said = next((line.split() for line in reversed(output) if line.startswith("found ")), None)
    if said is not None:
        return Accelerators(said[1], int(said[2]))
    errors = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"it ended with code {done.returncode}"]
    if "No module named 'torch'" in errors[-1]:
        raise TorchdiagError(_NO_TORCH)
    raise TorchdiagError(f"torch cannot be imported: {errors[-1]}; `torchdiag doctor` says more.")


def _any_device() -> bool:
    """Whether the system has what might be an accelerator."""
    if sys.platform != "linux":
        return True
    return any(True for pattern in _DEVICES for _ in Path("/dev").glob(pattern))


def _hidden() -> bool:
    """Whether the user hides all GPUs of NVIDIA's and AMD's, as one does."""
    return os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") and not any(Path("/dev").glob("dri/renderD*"))
