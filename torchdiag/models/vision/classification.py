"""Image classifiers of torchvision on random images."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# torch leaves parts of its own signatures untyped.

from typing import Any, cast

import torch
import torchvision
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload


def _classifier(name: str, setting: Setting) -> Workload:
    pixels, classes = (64, 10) if setting.tiny else (224, 1000)
    build = cast(Any, torchvision.models).get_model
    model = build(name, weights=None, num_classes=classes).to(setting.device, setting.dtype)
    images = torch.randn(setting.batch_size, 3, pixels, pixels, device=setting.device, dtype=setting.dtype)
    if not setting.training:
        model.eval()
        return Workload(inference_step(setting, lambda: model(images)), setting.batch_size, (model,))
    labels = torch.randint(classes, (setting.batch_size,), device=setting.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    step = training_step(setting, optimizer, lambda: functional.cross_entropy(model(images), labels))
    return Workload(step, setting.batch_size, (model,))


def resnet18(setting: Setting) -> Workload:
    """ResNet-18 (arXiv 1512.03385)."""
    return _classifier("resnet18", setting)


def resnet50(setting: Setting) -> Workload:
    """ResNet-50 (arXiv 1512.03385)."""
    return _classifier("resnet50", setting)


def vgg16(setting: Setting) -> Workload:
    """VGG-16 (arXiv 1409.1556)."""
    return _classifier("vgg16", setting)
