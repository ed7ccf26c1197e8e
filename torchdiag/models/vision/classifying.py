"""The step of a classifier: random images, random labels, cross-entropy."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload


def classifier(
    setting: Setting,
    model: nn.Module,
    image: tuple[int, int, int],
    classes: int,
    optimizer_of: Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer],
) -> Workload:
    """A step of `model` on images [batch, *image] of the setting's device and dtype."""
    images = torch.randn(setting.batch_size, *image, device=setting.device, dtype=setting.dtype)
    model.train(setting.training)
    if not setting.training:
        return Workload(inference_step(setting, lambda: model(images)), setting.batch_size, (model,))
    labels = torch.randint(classes, (setting.batch_size,), device=setting.device)
    step = training_step(
        setting, optimizer_of(model.parameters()), lambda: functional.cross_entropy(model(images), labels)
    )
    return Workload(step, setting.batch_size, (model,))
