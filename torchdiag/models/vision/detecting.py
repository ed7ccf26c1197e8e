"""The step of a detector: random images, boxes and masks; what it makes of its boxes is part of the step."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

OBJECTS_PER_IMAGE = 4


@dataclass(frozen=True, slots=True)
class Scene:
    """An image [3, H, W] and its objects: corners [M, 4] in pixels, labels [M], masks [M, H, W] of zeros and ones."""

    image: Tensor
    boxes: Tensor
    labels: Tensor
    masks: Tensor

    def target(self) -> dict[str, Tensor]:
        """The objects as torchvision's detectors want them."""
        return {"boxes": self.boxes, "labels": self.labels, "masks": self.masks}


def scene(setting: Setting, size: tuple[int, int], labels: range) -> Scene:
    """A random image of that height and width, its objects filled rectangles."""
    height, width = size
    image = torch.rand(3, height, width, device=setting.device, dtype=setting.dtype)
    scale = torch.tensor([width, height], device=setting.device, dtype=setting.dtype)
    corner = torch.rand(OBJECTS_PER_IMAGE, 2, device=setting.device, dtype=setting.dtype) * scale * 0.5
    extent = (0.1 + 0.4 * torch.rand(OBJECTS_PER_IMAGE, 2, device=setting.device, dtype=setting.dtype)) * scale
    boxes = torch.cat([corner, corner + extent], dim=1)
    named = torch.randint(labels.start, labels.stop, (OBJECTS_PER_IMAGE,), device=setting.device)
    left, top, right, bottom = boxes[:, :, None, None].unbind(dim=1)
    x = torch.arange(width, device=setting.device)
    y = torch.arange(height, device=setting.device).unsqueeze(1)
    masks = ((x >= left) & (x < right) & (y >= top) & (y < bottom)).to(torch.uint8)
    return Scene(image, boxes, named, masks)


def detector(setting: Setting, model: nn.Module, size: tuple[int, int], labels: range, note: str = "") -> Workload:
    """A step of a detector of torchvision's kind, which takes lists of images and of targets."""
    scenes = [scene(setting, size, labels) for _ in range(setting.batch_size)]
    images = [each.image for each in scenes]
    model.train(setting.training)
    if not setting.training:
        return Workload(inference_step(setting, lambda: model(images)), setting.batch_size, (model,), note)
    targets = [each.target() for each in scenes]

    def loss() -> Tensor:
        losses: dict[str, Tensor] = model(images, targets)
        return torch.stack(list(losses.values())).sum()

    return Workload(training_step(setting, momentum(model), loss), setting.batch_size, (model,), note)


def momentum(model: nn.Module) -> torch.optim.Optimizer:
    """Stochastic gradient descent over what is to be trained."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return torch.optim.SGD(trained, lr=1e-4, momentum=0.9, weight_decay=1e-4)


def expect(scores: nn.Module, label: int, logit: float) -> None:
    """Set the bias of a label, so that a detector without learned weights has boxes to keep and to look into."""
    bias = scores.bias
    assert isinstance(bias, Tensor)
    with torch.no_grad():
        bias[label] = logit
