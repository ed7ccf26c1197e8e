"""A loss or a forward pass turned into one repeatable step."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from collections.abc import Callable

import torch
from torch import Tensor, nn

from torchdiag.models.workload import Setting


class Computation(nn.Module):
    """A function of tensors without parameters as a module, so that compilers can be pointed at it."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: object) -> object:
        """What the function makes of the inputs."""
        return self.function(*inputs)


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


def gradientless_step(setting: Setting, forward: Callable[[], object]) -> Callable[[], object]:
    """The forward pass alone, for models that inference mode is too strict for.

    Those take derivatives of their own, or bring arrays of NumPy into the graph when compiled.
    """

    def step() -> object:
        with torch.no_grad(), setting.autocast_context():
            return forward()

    return step
