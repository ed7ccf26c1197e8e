"""A suite model as a step to be measured: built on its device, in its precision, compiled where that is asked for."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# torch leaves parts of its own signatures untyped.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchdiag.capture import device as devices
from torchdiag.history.profile_options import Dtype, ProfileOptions
from torchdiag.models import catalogue
from torchdiag.models.workload import Setting, Size, Workload

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class BuiltModel:
    """A model that is ready, and what was decided for it."""

    workload: Workload
    device: torch.device
    size: Size

    @property
    def parameters(self) -> int:
        """The number of its parameters, those that modules share counted once."""
        unique = {id(item): item.numel() for module in self.workload.modules for item in module.parameters()}
        return sum(unique.values())


def build(options: ProfileOptions) -> BuiltModel:
    """Build the model. `batch_size` must not be `tune` any more.

    Raises:
        TorchdiagError: no such device or package, or the model cannot do what was asked for.
    """
    import torch  # noqa: PLC0415 - so that the command line starts without torch

    entry = catalogue.find(options.target)
    device = devices.choose(options.device)
    size: Size = options.size or ("tiny" if device.type == "cpu" else "real")
    set_precision(options.dtype)
    batch_size = options.batch_size if isinstance(options.batch_size, int) else entry.default_batch(options.mode, size)
    dtypes = {"bf16": torch.bfloat16, "fp16": torch.float16}
    setting = Setting(
        mode=options.mode,
        device=device,
        dtype=dtypes.get(options.dtype, torch.float32),
        batch_size=batch_size,
        size=size,
        seed=options.seed,
        autocast=options.dtype == "amp",
    )
    workload = entry.build(setting)
    for module in workload.modules:
        if options.channels_last:
            module.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        if options.compile is not None:
            module.compile(mode=None if options.compile == "default" else options.compile)
    return BuiltModel(workload, device, size)


def set_precision(dtype: Dtype) -> None:
    """Float32 products in TF32 for `tf32`, in float32 for `fp32`; others leave the flags as torch has them."""
    import torch  # noqa: PLC0415

    if dtype in ("fp32", "tf32"):
        allowed = dtype == "tf32"
        torch.set_float32_matmul_precision("high" if allowed else "highest")
        torch.backends.cudnn.allow_tf32 = allowed
