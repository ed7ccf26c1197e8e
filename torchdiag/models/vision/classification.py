"""Image classifiers of torchvision on random images."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# torch leaves parts of its own signatures untyped.

from collections.abc import Callable
from typing import Any, cast

import torch
import torchvision

from torchdiag.models.vision.classifying import classifier
from torchdiag.models.workload import Setting, Workload


def _classifier(name: str) -> Callable[[Setting], Workload]:
    """The builder of a model that torchvision has under a name."""

    def build(setting: Setting) -> Workload:
        pixels, classes = (64, 10) if setting.tiny else (224, 1000)
        construct = cast(Any, torchvision.models).get_model
        model = construct(name, weights=None, num_classes=classes).to(setting.device, setting.dtype)
        return classifier(setting, model, (3, pixels, pixels), classes, _optimizer)

    return build


def _optimizer(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)


alexnet = _classifier("alexnet")  # arXiv 1404.5997
densenet121 = _classifier("densenet121")  # arXiv 1608.06993
mnasnet1_0 = _classifier("mnasnet1_0")  # arXiv 1807.11626
mobilenet_v2 = _classifier("mobilenet_v2")  # arXiv 1801.04381
mobilenet_v3_large = _classifier("mobilenet_v3_large")  # arXiv 1905.02244
resnet18 = _classifier("resnet18")  # arXiv 1512.03385
resnet50 = _classifier("resnet50")
resnet152 = _classifier("resnet152")
resnext50_32x4d = _classifier("resnext50_32x4d")  # arXiv 1611.05431
shufflenet_v2_x1_0 = _classifier("shufflenet_v2_x1_0")  # arXiv 1807.11164
squeezenet1_1 = _classifier("squeezenet1_1")  # arXiv 1602.07360
vgg16 = _classifier("vgg16")  # arXiv 1409.1556
