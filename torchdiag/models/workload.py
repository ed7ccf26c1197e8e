"""What is asked of a model and what it gives back: the whole protocol between models and whoever runs them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import torch
    from torch import nn

Mode = Literal["train", "eval"]
Size = Literal["real", "tiny"]

ENVIRONMENT_MARK: Final = "environment"
"""The name of the host events that span a reinforcement learner's calls into its environment."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is asked of a model.

    `dtype` is that of parameters and floating inputs; with `autocast` it stays float32 and the forward pass runs under
    autocast. `batch_size` has been decided already. `tiny` keeps a model's structure at a size that two CPU cores run
    in about a second.
    """

    mode: Mode
    device: torch.device
    dtype: torch.dtype
    batch_size: int
    size: Size
    seed: int = 0
    autocast: bool = False

    @property
    def training(self) -> bool:
        """Whether a training step is asked for."""
        return self.mode == "train"

    @property
    def tiny(self) -> bool:
        """Whether the small size is asked for."""
        return self.size == "tiny"

    def autocast_context(self) -> AbstractContextManager[object]:
        """Around a forward pass and its loss: bfloat16 autocast where asked for, nothing else otherwise."""
        if not self.autocast:
            return nullcontext()
        import torch  # noqa: PLC0415 - the protocol itself is read without torch

        return torch.autocast(self.device.type, dtype=torch.bfloat16)


@dataclass(frozen=True, slots=True)
class Workload:
    """A model ready to be timed.

    `step` runs one training or inference step on inputs that already live on the device: no data loading and no set-up
    happen inside it. `modules` are what `--compile` and `--channels-last` apply to, in place.
    `note` says what a reader of the result must know about the model, if anything.
    """

    step: Callable[[], object]
    batch_size: int
    modules: tuple[nn.Module, ...]
    note: str = ""
