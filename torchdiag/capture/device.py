"""The device of a run: which one, waiting for it, its clock and its memory."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# torch leaves parts of its own signatures untyped.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from torchdiag.errors import TorchdiagError
from torchdiag.history.run_result import MemoryResult

if TYPE_CHECKING:
    import torch


def choose(name: str) -> torch.device:
    """The device called `auto`, `cpu`, `cuda`, `cuda:1`, `xpu`, `mps`; `auto` takes the first accelerator there is.

    Raises:
        TorchdiagError: there is no such device here.
    """
    import torch  # noqa: PLC0415 - so that the command line starts without torch

    if name == "auto":
        name = next((kind for kind in ("cuda", "xpu", "mps") if _count(kind)), "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise TorchdiagError(
            f"There is no kind of device called {name!r}: auto, cpu, cuda, cuda:1, xpu, mps."
        ) from error
    if device.type == "cpu":
        return torch.device("cpu")
    count = _count(device.type)
    if not count:
        raise TorchdiagError(f"torch {torch.__version__} sees no {device.type} device here. {_why(device.type)}")
    index = cast("int | None", device.index)
    if index is not None and index >= count:
        raise TorchdiagError(f"There is no {name} here; the last one is {device.type}:{count - 1}.")
    if index is None and device.type != "mps":
        device = torch.device(device.type, 0)
    if device.type in ("cuda", "xpu"):
        _module(device.type).set_device(device)
    return device


def in_use() -> torch.device:
    """The device that a target uses by itself: the accelerator whose context it has made, else the CPU."""
    import torch  # noqa: PLC0415

    for kind in ("cuda", "xpu"):
        if _count(kind) and _module(kind).is_initialized():
            return torch.device(kind, _module(kind).current_device())
    return torch.device("cpu")


def _module(kind: str) -> Any:
    import torch  # noqa: PLC0415

    return getattr(torch, kind)


def _count(kind: str) -> int:
    import torch  # noqa: PLC0415

    if kind == "mps":
        return int(torch.backends.mps.is_available())
    module: Any = getattr(torch, kind, None)
    return int(module.device_count()) if module is not None and module.is_available() else 0


def _why(kind: str) -> str:
    import torch  # noqa: PLC0415

    if kind == "cuda" and torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return "It was built without CUDA: install a CUDA build of torch, or use `--device cpu`."
    return "`torchdiag doctor` says why; `--device cpu` runs without one."


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all it was given. Nothing to do on a CPU."""
    if device.type != "cpu":
        _module(device.type).synchronize()


def event(device: torch.device) -> Any:
    """A timing event that has been recorded in the device's current stream now; None where devices have none."""
    if device.type not in ("cuda", "xpu"):
        return None
    recorded = _module(device.type).Event(enable_timing=True)
    recorded.record()
    return recorded


def between_ns(first: Any, second: Any) -> int:
    """Nanoseconds on the device between two events, which must have happened (`synchronize`)."""
    return round(first.elapsed_time(second) * 1e6)


def reset_peaks(device: torch.device) -> None:
    """Peaks count from now on."""
    if device.type in ("cuda", "xpu"):
        _module(device.type).reset_peak_memory_stats(device)


def memory(device: torch.device) -> MemoryResult:
    """The peaks so far: of the process, and on a GPU those since `reset_peaks`."""
    peak = _peak_rss_bytes()
    if device.type not in ("cuda", "xpu"):
        return MemoryResult(peak_rss_bytes=peak)
    module = _module(device.type)
    statistics: dict[str, int] = module.memory_stats(device)
    return MemoryResult(
        peak_rss_bytes=peak,
        gpu_peak_allocated_bytes=int(module.max_memory_allocated(device)),
        gpu_peak_reserved_bytes=int(module.max_memory_reserved(device)),
        gpu_allocation_retries=statistics.get("num_alloc_retries"),
    )


def _peak_rss_bytes() -> int | None:
    try:
        import resource  # noqa: PLC0415 - Windows has none
        import sys  # noqa: PLC0415
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
