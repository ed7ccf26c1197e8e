"""YOLOv3 (arXiv 1804.02767): Darknet-53, predictions at three scales, and the loss with its target assignment."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

CLASSES = 80
STRIDES = (8, 16, 32)
PRIORS = (
    ((10, 13), (16, 30), (33, 23)),
    ((30, 61), (62, 45), (59, 119)),
    ((116, 90), (156, 198), (373, 326)),
)
"""Prior boxes of each scale, width and height in pixels (the paper's, for COCO)."""

IGNORE_OVERLAP = 0.5
"""A prediction that overlaps an object more than this, without being its best prior, is no negative."""

BOXES_PER_IMAGE = 8


def _convolution(before: int, after: int, size: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, size, stride, size // 2, bias=False),
        nn.BatchNorm2d(after),
        nn.LeakyReLU(0.1, inplace=True),
    )


class Residual(nn.Module):
    """A 1x1 and a 3x3 convolution around a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(_convolution(channels, channels // 2, 1), _convolution(channels // 2, channels, 3))

    def forward(self, features: Tensor) -> Tensor:
        """Same shape as the input."""
        return features + self.body(features)


class Darknet53(nn.Module):
    """Images [N, 3, H, W] to features at strides 8, 16 and 32; `width` is 32 in the paper."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stem = _convolution(3, width, 3)
        self.stages = nn.ModuleList()
        channels = width
        for blocks in (1, 2, 8, 8, 4):
            down = _convolution(channels, channels * 2, 3, stride=2)
            channels *= 2
            self.stages.append(nn.Sequential(down, *(Residual(channels) for _ in range(blocks))))

    def forward(self, images: Tensor) -> list[Tensor]:
        """Features of the last three stages, finest first."""
        features, kept = self.stem(images), list[Tensor]()
        for stage in self.stages:
            features = stage(features)
            kept.append(features)
        return kept[-3:]


class Head(nn.Module):
    """Five convolutions, then one more and a prediction; the five's output also goes on to the next finer scale."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        layers = [_convolution(before, width, 1)]
        for _ in range(2):
            layers += [_convolution(width, width * 2, 3), _convolution(width * 2, width, 1)]
        self.shared = nn.Sequential(*layers)
        self.predict = nn.Sequential(
            _convolution(width, width * 2, 3), nn.Conv2d(width * 2, len(PRIORS[0]) * (5 + CLASSES), 1)
        )

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The shared features [N, width, H, W] and the raw predictions [N, 3 * (5 + classes), H, W]."""
        shared = self.shared(features)
        return shared, self.predict(shared)


class YoloV3(nn.Module):
    """Images [N, 3, H, W] to raw predictions [N, 3, h, w, 5 + classes] at strides 8, 16 and 32."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.backbone = Darknet53(width)
        self.coarse = Head(width * 32, width * 16)
        self.to_medium = _convolution(width * 16, width * 8, 1)
        self.medium = Head(width * 24, width * 8)
        self.to_fine = _convolution(width * 8, width * 4, 1)
        self.fine = Head(width * 12, width * 4)

    def forward(self, images: Tensor) -> list[Tensor]:
        """Raw predictions, finest scale first."""
        fine, medium, coarse = self.backbone(images)
        shared, coarse_out = self.coarse(coarse)
        up = functional.interpolate(self.to_medium(shared), scale_factor=2.0, mode="nearest")
        shared, medium_out = self.medium(torch.cat([up, medium], dim=1))
        up = functional.interpolate(self.to_fine(shared), scale_factor=2.0, mode="nearest")
        _, fine_out = self.fine(torch.cat([up, fine], dim=1))
        return [_by_prior(out) for out in (fine_out, medium_out, coarse_out)]


def _by_prior(raw: Tensor) -> Tensor:
    batch, _, height, width = raw.shape
    return raw.view(batch, len(PRIORS[0]), 5 + CLASSES, height, width).permute(0, 1, 3, 4, 2)


@dataclass(frozen=True, slots=True)
class Objects:
    """What is in the images: `boxes` [N, M, 4] as centre x, centre y, width, height in pixels; `labels` [N, M]."""

    boxes: Tensor
    labels: Tensor


def decode(raw: Tensor, scale: int) -> Tensor:
    """Boxes [N, 3, h, w, 4] in pixels from raw predictions: the paper's section 2.1."""
    height, width = raw.shape[2:4]
    rows = torch.arange(height, device=raw.device, dtype=raw.dtype).view(1, 1, height, 1)
    columns = torch.arange(width, device=raw.device, dtype=raw.dtype).view(1, 1, 1, width)
    priors = torch.tensor(PRIORS[scale], device=raw.device, dtype=raw.dtype).view(1, len(PRIORS[scale]), 1, 1, 2)
    x = (raw[..., 0].sigmoid() + columns) * STRIDES[scale]
    y = (raw[..., 1].sigmoid() + rows) * STRIDES[scale]
    size = raw[..., 2:4].clamp(max=8).exp() * priors
    return torch.cat([x.unsqueeze(-1), y.unsqueeze(-1), size], dim=-1)


def overlap(first: Tensor, second: Tensor) -> Tensor:
    """Intersection over union of boxes (centre x, centre y, width, height) along the last dimension, broadcast."""
    low = torch.maximum(first[..., :2] - first[..., 2:] / 2, second[..., :2] - second[..., 2:] / 2)
    high = torch.minimum(first[..., :2] + first[..., 2:] / 2, second[..., :2] + second[..., 2:] / 2)
    shared = (high - low).clamp(min=0).prod(dim=-1)
    union = first[..., 2:].prod(dim=-1) + second[..., 2:].prod(dim=-1) - shared
    return shared / union.clamp(min=1e-9)


class YoloLoss:
    """Each object belongs to the one prior, of nine, that fits its shape best, in the cell that holds its centre.

    Every tensor keeps a fixed shape, so that nothing in the loss waits for the device.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        sizes = torch.tensor(PRIORS, device=device, dtype=dtype).view(-1, 2)
        self.prior_boxes = torch.cat([torch.zeros_like(sizes), sizes], dim=1)

    def __call__(self, outputs: list[Tensor], objects: Objects) -> Tensor:
        """The sum of the losses of the three scales, a scalar."""
        sizes = objects.boxes[..., 2:]
        centred = torch.cat([torch.zeros_like(sizes), sizes], dim=-1).unsqueeze(2)
        best = overlap(centred, self.prior_boxes).argmax(dim=2)
        losses = [self._scale_loss(raw, scale, best, objects) for scale, raw in enumerate(outputs)]
        return torch.stack(losses).sum()

    def _scale_loss(self, raw: Tensor, scale: int, best: Tensor, objects: Objects) -> Tensor:
        batch, priors, height, width, _ = raw.shape
        raw = raw.float()
        boxes, stride = objects.boxes.float(), STRIDES[scale]
        here = (best // priors == scale).float()
        prior = best % priors
        column = (boxes[..., 0] / stride).long().clamp(0, width - 1)
        row = (boxes[..., 1] / stride).long().clamp(0, height - 1)
        image = torch.arange(batch, device=raw.device).unsqueeze(1).expand_as(prior)

        chosen = raw[image, prior, row, column]
        offset = boxes[..., :2] / stride - torch.stack([column, row], dim=-1)
        prior_sizes = self.prior_boxes[best][..., 2:].float()
        centre = functional.binary_cross_entropy_with_logits(chosen[..., :2], offset, reduction="none").sum(dim=-1)
        shape = (chosen[..., 2:4] - (boxes[..., 2:] / prior_sizes).log()).square().sum(dim=-1)
        kinds = functional.one_hot(objects.labels, CLASSES).float()
        label = functional.binary_cross_entropy_with_logits(chosen[..., 5:], kinds, reduction="none").sum(dim=-1)

        cell = ((image * priors + prior) * height + row) * width + column
        positive = torch.zeros(batch * priors * height * width, device=raw.device)
        positive = positive.scatter_reduce(0, cell.flatten(), here.flatten(), "amax").view(batch, priors, height, width)
        with torch.no_grad():
            predicted = decode(raw, scale).view(batch, -1, 1, 4)
            covered = overlap(predicted, boxes.unsqueeze(1)).amax(dim=2).view_as(positive) > IGNORE_OVERLAP
        counted = torch.maximum(positive, (~covered).float())
        objectness = functional.binary_cross_entropy_with_logits(raw[..., 4], positive, reduction="none")
        return (here * (centre + shape + label)).sum() / batch + (counted * objectness).sum() / batch


def _objects(setting: Setting, height: int, width: int) -> Objects:
    shape = (setting.batch_size, BOXES_PER_IMAGE)
    scale = torch.tensor([width, height], device=setting.device, dtype=setting.dtype)
    centres = torch.rand(*shape, 2, device=setting.device, dtype=setting.dtype) * scale
    sizes = (0.05 + 0.6 * torch.rand(*shape, 2, device=setting.device, dtype=setting.dtype)) * scale
    return Objects(torch.cat([centres, sizes], dim=-1), torch.randint(CLASSES, shape, device=setting.device))


def build(setting: Setting) -> Workload:
    """384x512 images at full width; tiny: 96x128 at a quarter of the width."""
    (height, width), channels = ((96, 128), 8) if setting.tiny else ((384, 512), 32)
    model = YoloV3(channels).to(setting.device, setting.dtype)
    images = torch.randn(setting.batch_size, 3, height, width, device=setting.device, dtype=setting.dtype)
    if not setting.training:
        model.eval()

        def detect() -> Tensor:
            scales = enumerate(model(images))
            found = [torch.cat([decode(raw, scale), raw[..., 4:].sigmoid()], dim=-1) for scale, raw in scales]
            return torch.cat([boxes.flatten(1, 3) for boxes in found], dim=1)

        return Workload(inference_step(setting, detect), setting.batch_size, (model,))
    objects, loss = _objects(setting, height, width), YoloLoss(setting.device, setting.dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4)
    step = training_step(setting, optimizer, lambda: loss(model(images), objects))
    return Workload(step, setting.batch_size, (model,))
