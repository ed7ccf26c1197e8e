"""Detectors of torchvision on random images, boxes and masks."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# torch leaves parts of its own signatures untyped.

from typing import Any, cast

import torchvision

from torchdiag.models.vision.detecting import detector, expect
from torchdiag.models.vision.detectors_rebuilt import rcnn
from torchdiag.models.workload import Setting, Workload

CLASSES = 90
"""Kinds of objects of COCO as torchvision counts them."""


def fasterrcnn(setting: Setting) -> Workload:
    """Faster R-CNN (arXiv 1506.01497) on ResNet-50 with a feature pyramid."""
    return _detector(setting, "fasterrcnn_resnet50_fpn", masks=False)


def maskrcnn(setting: Setting) -> Workload:
    """Mask R-CNN (arXiv 1703.06870) on ResNet-50 with a feature pyramid."""
    return _detector(setting, "maskrcnn_resnet50_fpn", masks=True)


def _detector(setting: Setting, name: str, *, masks: bool) -> Workload:
    if setting.tiny:
        model = rcnn("fpn", 50, CLASSES, masks=masks, tiny=True)
    else:
        construct = cast(Any, torchvision.models).get_model
        model = construct(name, weights=None, weights_backbone=None, num_classes=CLASSES + 1)
        expect(model.roi_heads.box_predictor.cls_score, 1, 5.0)
    size = (64, 96) if setting.tiny else (800, 800)
    return detector(setting, model.to(setting.device, setting.dtype), size, range(1, CLASSES + 1))
