"""A loss or a forward pass turned into one repeatable step."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from collections.abc import Callable

import torch
from torch import Tensor

from torchdiag.models.workload import Setting


def training_step(
    setting: Setting, optimizer: torch.optim.Optimizer, loss_of: Callable[[], Tensor]
) -> Callable[[], Tensor]:
    """Zero the gradients, compute the loss, go backward, update. Returns the loss, a scalar on the device."""

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with setting.autocast_context():
            loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return step


def inference_step(setting: Setting, forward: Callable[[], object]) -> Callable[[], object]:
    """The forward pass alone, without autograd."""

    def step() -> object:
        with torch.inference_mode(), setting.autocast_context():
            return forward()

    return step
