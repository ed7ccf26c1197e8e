"""Models of detectron2's own zoo, without their weights."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# pyright: reportMissingImports=false
# detectron2 is on no package index, and has no types.

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.vision.detecting import Scene, momentum, scene
from torchdiag.models.workload import Setting, Workload

NOTE = "detectron2's own"


def build(setting: Setting, config: str, size: tuple[int, int], classes: int) -> Workload:
    """The model of a configuration of the zoo on images of that height and width."""
    model = _model(setting, config)
    inputs = [_input(scene(setting, size, range(classes))) for _ in range(setting.batch_size)]
    model.train(setting.training)
    if not setting.training:
        return Workload(inference_step(setting, lambda: model(inputs)), setting.batch_size, (model,), NOTE)

    def loss() -> Tensor:
        losses: dict[str, Tensor] = model(inputs)
        return torch.stack(list(losses.values())).sum()

    return Workload(training_step(setting, momentum(model), loss), setting.batch_size, (model,), NOTE)


def _model(setting: Setting, name: str) -> nn.Module:
    config: Any = import_module("detectron2.model_zoo").get_config(name, trained=False)
    if name.endswith(".py"):
        model = import_module("detectron2.config").instantiate(config.model)
    else:
        config.MODEL.DEVICE = str(setting.device)
        if setting.tiny:
            _shrink(config.MODEL)
        model = import_module("detectron2.modeling").build_model(config)
    return model.to(setting.device, setting.dtype)


def _shrink(model: Any) -> None:
    """The same structure, eight times narrower."""
    model.RESNETS.STEM_OUT_CHANNELS = model.RESNETS.WIDTH_PER_GROUP = 8
    model.RESNETS.RES2_OUT_CHANNELS = model.FPN.OUT_CHANNELS = model.ROI_MASK_HEAD.CONV_DIM = 32
    model.ROI_BOX_HEAD.FC_DIM = 64
    model.RPN.PRE_NMS_TOPK_TRAIN = model.RPN.PRE_NMS_TOPK_TEST = 50
    model.RPN.POST_NMS_TOPK_TRAIN = model.RPN.POST_NMS_TOPK_TEST = 10


def _input(seen: Scene) -> dict[str, Any]:
    structures: Any = import_module("detectron2.structures")
    height, width = seen.image.shape[-2:]
    instances = structures.Instances((height, width))
    instances.gt_boxes = structures.Boxes(seen.boxes)
    instances.gt_classes = seen.labels
    instances.gt_masks = structures.BitMasks(seen.masks)
    return {"image": seen.image * 255, "height": height, "width": width, "instances": instances}
