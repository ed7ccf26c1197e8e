"""The vision models of the catalogue."""

from torchdiag.models.entry import Entry

_TORCHVISION = ("torch", "torchvision")

ENTRIES = (
    Entry(
        "resnet18",
        "vision",
        "classification",
        "vision.classification:resnet18",
        {"train": 16, "eval": 8},
        requires=_TORCHVISION,
        a100_eval_batch=256,
    ),
    Entry(
        "resnet50",
        "vision",
        "classification",
        "vision.classification:resnet50",
        {"train": 32, "eval": 32},
        requires=_TORCHVISION,
        a100_eval_batch=64,
    ),
    Entry(
        "vgg16",
        "vision",
        "classification",
        "vision.classification:vgg16",
        {"train": 64, "eval": 4},
        requires=_TORCHVISION,
        a100_eval_batch=8,
    ),
    Entry(
        "resnet50_quantized_qat",
        "vision",
        "classification",
        "vision.quantized:resnet50",
        {"train": 32, "eval": 32},
        requires=_TORCHVISION,
    ),
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
)
