"""Differentially private learning (arXiv 1607.00133) of ResNet-18 on CIFAR-sized images.

Each sample's gradient is clipped by itself, then noise is added to their sum: with `vmap` over `grad`, or by Opacus.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# torch leaves parts of its own signatures untyped.

from importlib import import_module
from typing import Any, cast

import torch
import torchvision
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional

from torchdiag.models.stepping import inference_step
from torchdiag.models.workload import Setting, Workload

CLASSES, PIXELS = 10, 32
CLIP, NOISE = 1.2, 1.5
"""The largest gradient norm of a sample, and the noise's deviation in units of it."""


class _Block(cast(Any, torchvision.models.resnet).BasicBlock):
    """The library's block with nothing changed in place, which the hooks of Opacus forbid."""

    def forward(self, x: Tensor) -> Tensor:
        features = functional.relu(self.bn1(self.conv1(x)))
        shortcut = x if self.downsample is None else self.downsample(x)
        return functional.relu(self.bn2(self.conv2(features)) + shortcut)


def _network(setting: Setting) -> nn.Module:
    """ResNet-18 with group norms, since a batch norm would tell the samples of each other; tiny: one block a stage."""

    def norm(channels: int) -> nn.GroupNorm:
        return nn.GroupNorm(min(32, channels), channels)

    blocks = [1, 1, 1, 1] if setting.tiny else [2, 2, 2, 2]
    library = cast(Any, torchvision.models.resnet)
    model: nn.Module = library.ResNet(_Block, blocks, num_classes=CLASSES, norm_layer=norm)
    cast(nn.ReLU, model.relu).inplace = False
    return model


def _batch(setting: Setting) -> tuple[Tensor, Tensor]:
    shape = (setting.batch_size, 3, PIXELS, PIXELS)
    images = torch.randn(shape, device=setting.device, dtype=setting.dtype)
    return images, torch.randint(CLASSES, (setting.batch_size,), device=setting.device)


class PerSample(nn.Module):
    """The clipped sum of the gradients of all samples, a field a parameter, and the mean loss."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor, labels: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Of images [N, 3, 32, 32] and labels [N]."""

        def loss_of(weights: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
            logits = functional_call(self.network, weights, (image.unsqueeze(0),))
            return functional.cross_entropy(logits, label.unsqueeze(0))

        weights = {name: weight.detach() for name, weight in self.network.named_parameters()}
        slopes, losses = vmap(grad_and_value(loss_of), in_dims=(None, 0, 0))(weights, images, labels)
        # The norm of a sample is that over all of its gradients.
        squares = torch.stack([slope.flatten(1).square().sum(dim=1) for slope in slopes.values()])
        share = (CLIP / (squares.sum(dim=0).sqrt() + 1e-6)).clamp(max=1)
        clipped = dict[str, Tensor]()
        for name, slope in slopes.items():
            clipped[name] = torch.einsum("n,n...->...", share.to(slope.dtype), slope)
        return clipped, losses.mean()


def with_vmap(setting: Setting) -> Workload:
    """Per-sample gradients by `vmap` over `grad_and_value`."""
    model = _network(setting).to(setting.device, setting.dtype).train(setting.training)
    images, labels = _batch(setting)
    if not setting.training:
        return Workload(inference_step(setting, lambda: model(images)), setting.batch_size, (model,))
    gradients = PerSample(model)
    parameters = dict(model.named_parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> Tensor:
        with setting.autocast_context():
            clipped, loss = gradients(images, labels)
        for name, weight in parameters.items():
            noise = NOISE * CLIP * torch.randn_like(weight)
            weight.grad = (clipped[name].to(weight.dtype) + noise) / setting.batch_size
        optimizer.step()
        return loss

    return Workload(step, setting.batch_size, (gradients,))


def with_opacus(setting: Setting) -> Workload:
    """Per-sample gradients by the hooks of Opacus, without its sampling data loader: the batch is always the same."""
    sampling, optimizers = cast(Any, import_module("opacus")), cast(Any, import_module("opacus.optimizers"))
    model: nn.Module = _network(setting).to(setting.device, setting.dtype).train(setting.training)
    images, labels = _batch(setting)
    if not setting.training:
        return Workload(inference_step(setting, lambda: model(images)), setting.batch_size, (model,))
    hooked: nn.Module = sampling.GradSampleModule(model)
    optimizer: Any = optimizers.DPOptimizer(
        torch.optim.SGD(hooked.parameters(), lr=0.1),
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
        expected_batch_size=setting.batch_size,
    )

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with setting.autocast_context():
            loss = functional.cross_entropy(hooked(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return Workload(step, setting.batch_size, (hooked,))
