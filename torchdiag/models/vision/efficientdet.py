"""EfficientDet-D1 (arXiv 1911.09070) of effdet on random images and boxes, from labels to the choice of boxes."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# pyright: reportMissingImports=false
# effdet is optional and has no types, and torch leaves parts of its own signatures untyped.

from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.vision.detecting import momentum, scene
from torchdiag.models.workload import Setting, Workload


def build(setting: Setting) -> Workload:
    """Images of 640 x 640 (128 x 128 in the tiny size)."""
    effdet: Any = import_module("effdet")
    config: Any = effdet.get_efficientdet_config("tf_efficientdet_d1")
    if setting.tiny:
        config.backbone_name = "tf_efficientnet_b0"
        config.image_size = [128, 128]
        config.fpn_channels, config.fpn_cell_repeats, config.box_class_repeats = 16, 1, 1
        config.max_detection_points, config.num_classes = 100, 10
    model: Any = effdet.EfficientDet(config, pretrained_backbone=False)
    bench: Any = (effdet.DetBenchTrain if setting.training else effdet.DetBenchPredict)(model)
    bench = bench.to(setting.device, setting.dtype).train(setting.training)
    height, width = config.image_size
    scenes = [scene(setting, (height, width), range(1, config.num_classes + 1)) for _ in range(setting.batch_size)]
    images = torch.stack([each.image for each in scenes])
    if not setting.training:
        return Workload(inference_step(setting, lambda: bench(images)), setting.batch_size, (bench,))
    # Its boxes give y before x, its labels are numbers with a fraction.
    target = {
        "bbox": torch.stack([each.boxes[:, [1, 0, 3, 2]] for each in scenes]),
        "cls": torch.stack([each.labels for each in scenes]).to(setting.dtype),
    }

    def loss() -> Tensor:
        return bench(images, target)["loss"]

    return Workload(training_step(setting, momentum(bench), loss), setting.batch_size, (bench,))
