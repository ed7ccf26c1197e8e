"""The vision models of the catalogue."""

from torchdiag.models.entry import Entry

_TORCHVISION = ("torch", "torchvision")


def _classifier(name: str, train: int, evaluation: int, a100: int) -> Entry:
    return Entry(
        name,
        "vision",
        "classification",
        f"vision.classification:{name}",
        {"train": train, "eval": evaluation},
        requires=_TORCHVISION,
        a100_eval_batch=a100,
    )


def _quantized(name: str, batch: int) -> Entry:
    return Entry(
        f"{name}_quantized_qat",
        "vision",
        "classification",
        f"vision.quantized:{name}",
        {"train": batch, "eval": batch},
        requires=_TORCHVISION,
    )


def _timm(name: str, train: int, evaluation: int, a100: int | None, task: str = "classification") -> Entry:
    return Entry(
        f"timm_{name}",
        "vision",
        task,
        f"vision.timm_models:{name}",
        {"train": train, "eval": evaluation},
        requires=("torch", "timm"),
        a100_eval_batch=a100,
    )


def _detectron2(name: str, a100: int, task: str = "detection") -> Entry:
    return Entry(
        f"detectron2_{name}",
        "vision",
        task,
        f"vision.detectron2_models:{name}",
        {"train": 1, "eval": 1},
        tiny_batch=1,
        requires=_TORCHVISION,
        a100_eval_batch=a100,
    )


ENTRIES = (
    _classifier("alexnet", 128, 128, 1024),
    _classifier("densenet121", 256, 64, 64),
    _classifier("mnasnet1_0", 32, 32, 128),
    _classifier("mobilenet_v2", 96, 16, 128),
    _classifier("mobilenet_v3_large", 32, 32, 128),
    _classifier("resnet18", 16, 8, 256),
    _classifier("resnet50", 32, 32, 64),
    _classifier("resnet152", 32, 32, 64),
    _classifier("resnext50_32x4d", 8, 8, 64),
    _classifier("shufflenet_v2_x1_0", 128, 64, 128),
    _classifier("squeezenet1_1", 32, 16, 256),
    _classifier("vgg16", 64, 4, 8),
    _quantized("mobilenet_v2", 96),
    _quantized("resnet50", 32),
    Entry("yolov3", "vision", "detection", "vision.yolov3:build", {"train": 16, "eval": 8}, a100_eval_batch=8),
    Entry(
        "fasterrcnn_resnet50_fpn",
        "vision",
        "detection",
        "vision.detection:fasterrcnn",
        {"train": 4, "eval": 4},
        tiny_batch=1,
        requires=_TORCHVISION,
        later=True,
    ),
    Entry(
        "dcgan",
        "vision",
        "generation",
        "vision.dcgan:build",
        {"train": 32, "eval": 256},
        tiny_batch=4,
        a100_eval_batch=1024,
    ),
    _timm("efficientnet", 32, 64, 128),
    _timm("nfnet", 128, 128, 128),
    _timm("regnet", 32, 32, 32),
    _timm("resnest", 32, 32, 256),
    _timm("vision_transformer", 8, 8, 128, "generation"),
    _timm("vision_transformer_large", 8, 8, None, "generation"),
    _timm("vovnet", 32, 32, 128, "detection"),
    Entry(
        "phlippe_densenet",
        "vision",
        "classification",
        "vision.cifar:densenet",
        {"train": 128, "eval": 128},
        a100_eval_batch=128,
    ),
    Entry(
        "phlippe_resnet",
        "vision",
        "classification",
        "vision.cifar:resnet",
        {"train": 128, "eval": 128},
        a100_eval_batch=256,
    ),
    Entry("pytorch_unet", "vision", "segmentation", "vision.unet:build", {"train": 1, "eval": 1}, a100_eval_batch=4),
    Entry(
        "pytorch_CycleGAN_and_pix2pix",
        "vision",
        "generation",
        "vision.cyclegan:build",
        {"train": 1, "eval": 1},
        tiny_batch=1,
        fixed_batch=True,
    ),
    Entry(
        "pytorch_stargan",
        "vision",
        "generation",
        "vision.stargan:build",
        {"train": 16, "eval": 16},
        fixed_batch=True,
    ),
    Entry(
        "Super_SloMo",
        "vision",
        "other computer vision",
        "vision.super_slomo:build",
        {"train": 6, "eval": 6},
        a100_eval_batch=8,
    ),
    _detectron2("fasterrcnn_r_101_c4", 1),
    _detectron2("fasterrcnn_r_101_dc5", 4),
    _detectron2("fasterrcnn_r_101_fpn", 4),
    _detectron2("fasterrcnn_r_50_c4", 1),
    _detectron2("fasterrcnn_r_50_dc5", 1),
    _detectron2("fasterrcnn_r_50_fpn", 4),
    _detectron2("fcos_r_50_fpn", 4, "segmentation"),
    _detectron2("maskrcnn", 4),
    _detectron2("maskrcnn_r_101_c4", 2, "segmentation"),
    _detectron2("maskrcnn_r_101_fpn", 4, "segmentation"),
    _detectron2("maskrcnn_r_50_c4", 1, "segmentation"),
    _detectron2("maskrcnn_r_50_fpn", 4, "segmentation"),
    Entry(
        "vision_maskrcnn",
        "vision",
        "detection",
        "vision.detection:maskrcnn",
        {"train": 4, "eval": 4},
        tiny_batch=1,
        requires=_TORCHVISION,
        a100_eval_batch=4,
    ),
    Entry(
        "timm_efficientdet",
        "vision",
        "detection",
        "vision.efficientdet:build",
        {"train": 16, "eval": 128},
        requires=("torch", "effdet"),
        a100_eval_batch=128,
    ),
    Entry(
        "doctr_det_predictor",
        "vision",
        "detection",
        "vision.doctr_models:detector",
        {"eval": 1},
        tiny_batch=1,
        requires=("torch", "doctr"),
        a100_eval_batch=4,
    ),
    Entry(
        "doctr_reco_predictor",
        "vision",
        "detection",
        "vision.doctr_models:recognizer",
        {"eval": 1},
        tiny_batch=1,
        requires=("torch", "doctr"),
        a100_eval_batch=64,
    ),
    Entry(
        "Background_Matting",
        "vision",
        "other computer vision",
        "vision.background_matting:build",
        {"train": 4, "eval": 1},
        tiny_batch=1,
        fixed_batch=True,
    ),
    Entry(
        "DALLE2_pytorch",
        "vision",
        "generation",
        "vision.dalle2:build",
        {"train": 4, "eval": 1},
        a100_eval_batch=1,
    ),
)
