"""Faster R-CNN, Mask R-CNN and FCOS with detectron2's backbones and heads, from torchvision's parts.

C4 (arXiv 1506.01497, 1703.06870) proposes on the third stage and runs the fourth on each box; DC5 proposes on a dilated
fourth stage; FPN (arXiv 1612.03144) on a pyramid. Widths, anchors and numbers of proposals are those of detectron2's
configurations for COCO. Unlike detectron2, torchvision's box regression has a row for the background too, and its C4
mask head runs the fourth stage a second time in training.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# torch leaves parts of its own signatures untyped.

from typing import Any, Literal, cast

from torch import nn
from torchvision.models.detection import FCOS, FasterRCNN, MaskRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.mask_rcnn import MaskRCNNHeads, MaskRCNNPredictor
from torchvision.models.detection.rpn import RPNHead
from torchvision.ops import MultiScaleRoIAlign
from torchvision.ops.feature_pyramid_network import LastLevelMaxPool, LastLevelP6P7

from torchdiag.models.vision.detecting import expect
from torchdiag.models.vision.detector_backbones import (
    RESNET50,
    RESNET101,
    TINY50,
    TINY101,
    Depth,
    Pyramid,
    Stages,
    stage,
)

Features = Literal["c4", "dc5", "fpn"]

SIZES = (32, 64, 128, 256, 512)
"""Edges of the anchors in pixels."""
SHAPES = (0.5, 1.0, 2.0)


def depth_of(layers: int, *, tiny: bool) -> Depth:
    """The residual network of 50 or 101 layers."""
    if layers == 50:
        return TINY50 if tiny else RESNET50
    return TINY101 if tiny else RESNET101


def rcnn(features: Features, layers: int, classes: int, *, masks: bool, tiny: bool) -> nn.Module:
    """A detector of `classes` kinds of objects, which are counted from one."""
    depth = depth_of(layers, tiny=tiny)
    match features:
        case "fpn":
            parts = _fpn(depth, classes + 1, masks=masks, tiny=tiny)
        case "c4":
            parts = _c4(depth, classes + 1, masks=masks, tiny=tiny)
        case "dc5":
            parts = _dc5(depth, classes + 1, tiny=tiny)
    if tiny:
        parts |= {f"rpn_pre_nms_top_n_{mode}": 50 for mode in ("train", "test")}
        parts |= {f"rpn_post_nms_top_n_{mode}": 10 for mode in ("train", "test")}
        parts |= {"box_batch_size_per_image": 8, "box_detections_per_img": 5, "min_size": 64, "max_size": 128}
    expect(parts["box_predictor"].cls_score, 1, 5.0)
    return (MaskRCNN if masks else FasterRCNN)(**parts)


def _fpn(depth: Depth, labels: int, *, masks: bool, tiny: bool) -> dict[str, Any]:
    width, hidden = (32, 64) if tiny else (256, 1024)
    levels = ["0", "1", "2", "3"]
    parts: dict[str, Any] = {
        "backbone": Pyramid(depth, (1, 2, 3, 4), width, LastLevelMaxPool()),
        "rpn_anchor_generator": AnchorGenerator(tuple((size,) for size in SIZES), (SHAPES,) * len(SIZES)),
        "rpn_head": RPNHead(width, len(SHAPES)),
        "rpn_post_nms_top_n_train": 1000,
        "box_roi_pool": MultiScaleRoIAlign(levels, 7, 0),
        "box_head": TwoMLPHead(width * 7 * 7, hidden),
        "box_predictor": FastRCNNPredictor(hidden, labels),
    }
    if masks:
        parts["mask_roi_pool"] = MultiScaleRoIAlign(levels, 14, 0)
        parts["mask_head"] = MaskRCNNHeads(width, (width,) * 4, 1)
        parts["mask_predictor"] = MaskRCNNPredictor(width, width, labels)
    return parts


def _one_level(backbone: Stages) -> dict[str, Any]:
    """What C4 and DC5 share: all anchors on one level of stride 16, and more proposals."""
    return {
        "backbone": backbone,
        "rpn_anchor_generator": AnchorGenerator((SIZES,), (SHAPES,)),
        "rpn_head": RPNHead(backbone.out_channels, len(SIZES) * len(SHAPES)),
        "rpn_pre_nms_top_n_train": 12_000,
        "rpn_pre_nms_top_n_test": 6000,
    }


def _c4(depth: Depth, labels: int, *, masks: bool, tiny: bool) -> dict[str, Any]:
    parts = _one_level(Stages(depth, (3,)))
    fourth, channels = stage(depth, 4, 2), depth.channels(4)
    parts |= {
        "box_roi_pool": MultiScaleRoIAlign(["0"], 14, 0),
        "box_head": nn.Sequential(fourth, nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        "box_predictor": FastRCNNPredictor(channels, labels),
    }
    if masks:
        parts["mask_roi_pool"] = MultiScaleRoIAlign(["0"], 14, 0)
        parts["mask_head"] = fourth
        parts["mask_predictor"] = MaskRCNNPredictor(channels, 32 if tiny else 256, labels)
    return parts


def _dc5(depth: Depth, labels: int, *, tiny: bool) -> dict[str, Any]:
    hidden = 64 if tiny else 1024
    return _one_level(Stages(depth, (4,), dilated=True)) | {
        "box_roi_pool": MultiScaleRoIAlign(["0"], 7, 0),
        "box_head": TwoMLPHead(depth.channels(4) * 7 * 7, hidden),
        "box_predictor": FastRCNNPredictor(hidden, labels),
    }


def fcos(classes: int, *, tiny: bool) -> FCOS:
    """FCOS (arXiv 1904.01355) on five levels of a pyramid; classes are counted from zero."""
    width = 64 if tiny else 256
    backbone = Pyramid(depth_of(50, tiny=tiny), (2, 3, 4), width, LastLevelP6P7(width, width))
    limits: dict[str, Any] = {"min_size": 64, "max_size": 128, "topk_candidates": 20} if tiny else {}
    model = FCOS(backbone, classes, **limits)
    expect(cast(Any, model).head.classification_head.cls_logits, 0, 0.0)
    return model
