"""detectron2's detectors: its own where it is installed, and otherwise a rebuild from torchvision's parts."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# torch leaves parts of its own signatures untyped.

from collections.abc import Callable
from importlib.util import find_spec

from torchdiag.models.vision import detectors_rebuilt
from torchdiag.models.vision.detecting import detector
from torchdiag.models.workload import Setting, Workload

CLASSES = 80
SIZE, TINY_SIZE = (800, 1067), (64, 96)
"""Height and width in pixels; the real one is that of a 480 x 640 image of COCO as these detectors enlarge it."""

REBUILT = "rebuilt from torchvision's parts, as detectron2 is not installed"


def _rcnn(
    features: detectors_rebuilt.Features, layers: int, *, masks: bool, config: str
) -> Callable[[Setting], Workload]:
    def build(setting: Setting) -> Workload:
        size = TINY_SIZE if setting.tiny else SIZE
        if find_spec("detectron2") is not None:
            from torchdiag.models.vision import detectron2_library  # noqa: PLC0415 - optional

            return detectron2_library.build(setting, config, size, CLASSES)
        model = detectors_rebuilt.rcnn(features, layers, CLASSES, masks=masks, tiny=setting.tiny)
        return detector(setting, model.to(setting.device, setting.dtype), size, range(1, CLASSES + 1), REBUILT)

    return build


def _boxes(features: detectors_rebuilt.Features, layers: int) -> Callable[[Setting], Workload]:
    config = f"COCO-Detection/faster_rcnn_R_{layers}_{features.upper()}_3x.yaml"
    return _rcnn(features, layers, masks=False, config=config)


def _masks(features: detectors_rebuilt.Features, layers: int) -> Callable[[Setting], Workload]:
    config = f"COCO-InstanceSegmentation/mask_rcnn_R_{layers}_{features.upper()}_3x.yaml"
    return _rcnn(features, layers, masks=True, config=config)


fasterrcnn_r_50_c4, fasterrcnn_r_101_c4 = _boxes("c4", 50), _boxes("c4", 101)
fasterrcnn_r_50_dc5, fasterrcnn_r_101_dc5 = _boxes("dc5", 50), _boxes("dc5", 101)
fasterrcnn_r_50_fpn, fasterrcnn_r_101_fpn = _boxes("fpn", 50), _boxes("fpn", 101)
maskrcnn_r_50_c4, maskrcnn_r_101_c4 = _masks("c4", 50), _masks("c4", 101)
maskrcnn_r_50_fpn, maskrcnn_r_101_fpn = _masks("fpn", 50), _masks("fpn", 101)
maskrcnn = _masks("fpn", 50)


def fcos_r_50_fpn(setting: Setting) -> Workload:
    """FCOS on ResNet-50 with a feature pyramid."""
    size = TINY_SIZE if setting.tiny else SIZE
    if find_spec("detectron2") is not None:
        from torchdiag.models.vision import detectron2_library  # noqa: PLC0415 - optional

        return detectron2_library.build(setting, "COCO-Detection/fcos_R_50_FPN_1x.py", size, CLASSES)
    model = detectors_rebuilt.fcos(CLASSES, tiny=setting.tiny)
    return detector(setting, model.to(setting.device, setting.dtype), size, range(CLASSES), REBUILT)
