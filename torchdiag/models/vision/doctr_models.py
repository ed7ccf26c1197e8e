"""The text detector and the text recognizer of docTR, each with what it makes of its output on the host."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# pyright: reportMissingImports=false
# docTR is optional, and torch leaves parts of its own signatures untyped.

from importlib import import_module
from typing import Any

import torch

from torchdiag.models.stepping import inference_step
from torchdiag.models.workload import Setting, Workload


def detector(setting: Setting) -> Workload:
    """Differentiable binarization (arXiv 1911.08947) on pages of 1024 x 1024."""
    return _predictor(setting, "db_resnet50", (64, 64) if setting.tiny else (1024, 1024))


def recognizer(setting: Setting) -> Workload:
    """A convolutional recurrent network (arXiv 1507.05717) on words of 32 x 128."""
    return _predictor(setting, "crnn_vgg16_bn", (32, 32) if setting.tiny else (32, 128))


def _predictor(setting: Setting, name: str, size: tuple[int, int]) -> Workload:
    construct: Any = getattr(import_module("doctr.models"), name)
    # Without the second, it downloads the backbone's weights.
    model: Any = construct(pretrained=False, pretrained_backbone=False)
    model = model.to(setting.device, setting.dtype).eval()
    images = torch.randn(setting.batch_size, 3, *size, device=setting.device, dtype=setting.dtype)
    step = inference_step(setting, lambda: model(images, return_model_output=True))
    return Workload(step, setting.batch_size, (model,))
