"""Image classifiers of timm on random images."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# pyright: reportUnknownVariableType=false, reportMissingImports=false
# timm is optional, and torch leaves parts of its own signatures untyped.

from collections.abc import Callable
from typing import Any, cast

import torch

from torchdiag.models.vision.classifying import classifier
from torchdiag.models.workload import Setting, Workload


def _classifier(name: str, pixels: int, tiny_pixels: int, **tiny: Any) -> Callable[[Setting], Workload]:
    """The builder of timm's `name`; `pixels` is its training size, `tiny` what makes it small in the tiny size."""

    def build(setting: Setting) -> Workload:
        import timm  # noqa: PLC0415 - takes seconds, and is optional

        size, classes = (tiny_pixels, 10) if setting.tiny else (pixels, 1000)
        options: dict[str, Any] = tiny if setting.tiny else {}
        create = cast(Any, timm).create_model
        model = create(name, pretrained=False, num_classes=classes, **options).to(setting.device, setting.dtype)
        return classifier(setting, model, (3, size, size), classes, torch.optim.AdamW)

    return build


_SMALL_TRANSFORMER = {"embed_dim": 48, "depth": 3, "num_heads": 3}
_SMALL_NFNET = {"channels": (32, 64, 96, 96), "group_size": 16, "stem_chs": 16}
_SMALL_REGNET = {"w0": 24, "wa": 10.5, "group_size": 8}
_SMALL_VOVNET = {"stem_chs": [8, 8, 16], "stage_conv_chs": [16, 20, 24, 28], "stage_out_chs": [32, 64, 96, 128]}

efficientnet = _classifier("efficientnet_b0", 224, 32)  # arXiv 1905.11946
nfnet = _classifier("dm_nfnet_f0", 192, 64, **_SMALL_NFNET)  # arXiv 2102.06171
regnet = _classifier("regnety_120", 224, 64, **_SMALL_REGNET)  # arXiv 2003.13678
resnest = _classifier("resnest14d", 224, 32)  # arXiv 2004.08955
vovnet = _classifier("vovnet39a", 224, 64, **_SMALL_VOVNET)  # arXiv 1904.09730
vision_transformer = _classifier("vit_small_patch16_224", 224, 48, img_size=48, **_SMALL_TRANSFORMER)
vision_transformer_large = _classifier("vit_giant_patch14_224", 224, 56, img_size=56, **_SMALL_TRANSFORMER)
