"""Detectors of torchvision on random images and boxes."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# torch leaves parts of its own signatures untyped.

from typing import Any, cast

import torch
import torchvision
from torch import Tensor

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

BOXES_PER_IMAGE = 4


def fasterrcnn(setting: Setting) -> Workload:
    """Faster R-CNN (arXiv 1506.01497) on ResNet-50 with a feature pyramid; its post-processing is part of the step."""
    pixels = 128 if setting.tiny else 800
    limits: dict[str, Any] = {"min_size": pixels, "max_size": pixels * 2}
    if setting.tiny:
        limits |= {"rpn_pre_nms_top_n_train": 100, "rpn_pre_nms_top_n_test": 100, "box_detections_per_img": 10}
    build = cast(Any, torchvision.models.detection).fasterrcnn_resnet50_fpn
    model = build(weights=None, weights_backbone=None, num_classes=91, **limits).to(setting.device, setting.dtype)
    images = list(torch.randn(setting.batch_size, 3, pixels, pixels, device=setting.device, dtype=setting.dtype))
    if not setting.training:
        model.eval()
        return Workload(inference_step(setting, lambda: model(images)), setting.batch_size, (model,))
    model.train()
    targets = [_target(setting, pixels) for _ in images]
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=1e-4, momentum=0.9)

    def loss() -> Tensor:
        losses: dict[str, Tensor] = model(images, targets)
        return torch.stack(list(losses.values())).sum()

    return Workload(training_step(setting, optimizer, loss), setting.batch_size, (model,))


def _target(setting: Setting, pixels: int) -> dict[str, Tensor]:
    corner = torch.rand(BOXES_PER_IMAGE, 2, device=setting.device, dtype=setting.dtype) * pixels * 0.5
    size = (0.1 + 0.4 * torch.rand(BOXES_PER_IMAGE, 2, device=setting.device, dtype=setting.dtype)) * pixels
    labels = torch.randint(1, 91, (BOXES_PER_IMAGE,), device=setting.device)
    return {"boxes": torch.cat([corner, corner + size], dim=1), "labels": labels}
