"""Image classifiers of torchvision on random images."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# torch leaves parts of its own signatures untyped.

from collections.abc import Callable
from typing import Any, cast

import torch
import torchvision
from torch import nn

from torchdiag.models.vision.classifying import classifier
from torchdiag.models.workload import Setting, Workload

_NARROWER = 16
"""How many times narrower a plain chain of layers is in the tiny size."""


def _classifier(name: str, *, tiny_pixels: int = 64, chain: bool = False, **tiny: Any) -> Callable[[Setting], Workload]:
    """The builder of torchvision's `name`; in the tiny size `tiny` makes it smaller, and narrowing a `chain`."""

    def build(setting: Setting) -> Workload:
        pixels, classes = (tiny_pixels, 10) if setting.tiny else (224, 1000)
        construct = cast(Any, torchvision.models).get_model
        if setting.tiny and chain:
            # The full widths take seconds to draw.
            with torch.device("meta"):
                model = construct(name, weights=None, num_classes=classes)
            _narrow(model, classes)
        else:
            model = construct(name, weights=None, num_classes=classes, **(tiny if setting.tiny else {}))
        return classifier(setting, model.to(setting.device, setting.dtype), (3, pixels, pixels), classes, _optimizer)

    return build


def _narrow(model: nn.Module, classes: int) -> None:
    """Divide all widths but the colours and the classes of a model whose layers follow one another, in place."""
    for parent in list(model.modules()):
        for name, layer in parent.named_children():
            if isinstance(layer, nn.Conv2d):
                before = layer.in_channels if layer.in_channels == 3 else layer.in_channels // _NARROWER
                kernel, stride, padding = (
                    cast(Any, value) for value in (layer.kernel_size, layer.stride, layer.padding)
                )
                setattr(parent, name, nn.Conv2d(before, layer.out_channels // _NARROWER, kernel, stride, padding))
            elif isinstance(layer, nn.Linear):
                after = classes if layer.out_features == classes else layer.out_features // _NARROWER
                setattr(parent, name, nn.Linear(layer.in_features // _NARROWER, after))


def _optimizer(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)


alexnet = _classifier("alexnet", chain=True)  # arXiv 1404.5997
densenet121 = _classifier("densenet121", tiny_pixels=32)  # arXiv 1608.06993
mnasnet1_0 = _classifier("mnasnet1_0")  # arXiv 1807.11626
mobilenet_v2 = _classifier("mobilenet_v2")  # arXiv 1801.04381
mobilenet_v3_large = _classifier("mobilenet_v3_large")  # arXiv 1905.02244
resnet18 = _classifier("resnet18")  # arXiv 1512.03385
resnet50 = _classifier("resnet50", width_per_group=4)
resnet152 = _classifier("resnet152", width_per_group=4)
resnext50_32x4d = _classifier("resnext50_32x4d", tiny_pixels=32)  # arXiv 1611.05431
shufflenet_v2_x1_0 = _classifier("shufflenet_v2_x1_0")  # arXiv 1807.11164
squeezenet1_1 = _classifier("squeezenet1_1")  # arXiv 1602.07360
vgg16 = _classifier("vgg16", chain=True)  # arXiv 1409.1556
