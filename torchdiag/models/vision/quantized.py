"""Quantized classifiers: fake-quantized training on any device, int8 inference on the CPU."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# torch leaves parts of its own signatures untyped.

import copy
import warnings
from typing import Any, cast

import torch
import torchvision
from torch.nn import functional

from torchdiag.errors import TorchdiagError
from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload


def resnet50(setting: Setting) -> Workload:
    """ResNet-50 in eager-mode quantization; quantization-aware when training."""
    return _quantized("resnet50", setting, width_per_group=4)


def mobilenet_v2(setting: Setting) -> Workload:
    """MobileNetV2 in eager-mode quantization; quantization-aware when training."""
    return _quantized("mobilenet_v2", setting)


def _quantized(name: str, setting: Setting, **tiny: int) -> Workload:
    """The model of torchvision; `tiny` makes it smaller in the tiny size."""
    if setting.dtype is not torch.float32 or setting.autocast:
        raise TorchdiagError(f"{name}_quantized_qat runs in fp32 with int8 inside; leave --dtype at fp32.")
    if not setting.training and setting.device.type != "cpu":
        raise TorchdiagError(f"{name}_quantized_qat evaluates in int8, which is CPU only; use --device cpu.")
    library, quantization = cast(Any, torchvision.models.quantization), cast(Any, torch.ao.quantization)
    pixels, classes = (64, 10) if setting.tiny else (224, 1000)
    model = getattr(library, name)(weights=None, quantize=False, num_classes=classes, **(tiny if setting.tiny else {}))
    images = torch.randn(setting.batch_size, 3, pixels, pixels, device=setting.device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.train(setting.training)
        model.fuse_model(is_qat=setting.training)
        engine = "fbgemm" if "fbgemm" in torch.backends.quantized.supported_engines else "qnnpack"
        torch.backends.quantized.engine = engine
        if setting.training:
            model.qconfig = quantization.get_default_qat_qconfig(engine)
            model = quantization.prepare_qat(model, inplace=False).to(setting.device)
        else:
            model.qconfig = quantization.get_default_qconfig(engine)
            prepared = quantization.prepare(copy.deepcopy(model), inplace=False)
            with torch.inference_mode():
                prepared(images)
            model = quantization.convert(prepared, inplace=False)
    if not setting.training:
        return Workload(inference_step(setting, lambda: model(images)), setting.batch_size, (model,))
    labels = torch.randint(classes, (setting.batch_size,), device=setting.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    step = training_step(setting, optimizer, lambda: functional.cross_entropy(model(images), labels))
    return Workload(step, setting.batch_size, (model,))
