"""Background matting (arXiv 2004.00626): a person's outline and colours from the image and the scene without them.

The step is the paper's second stage: a student learns from a fixed teacher, and from critics that look at people pasted
onto other backgrounds.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step
from torchdiag.models.vision.translation_parts import patch_discriminator
from torchdiag.models.workload import Setting, Workload

IMITATION = 0.05
"""Weight of following the teacher, against that of deceiving the critics."""

PRIORS = (3, 1, 4)
"""Channels of what is given beside the image: the background, a rough outline, and four grey frames for motion."""


@dataclass(frozen=True, slots=True)
class Scene:
    """An image [N, 3, H, W], its background, a rough outline [N, 1, H, W] and four grey frames [N, 4, H, W]."""

    image: Tensor
    background: Tensor
    outline: Tensor
    motion: Tensor


def _layer(before: int, after: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, kernel, stride, kernel // 2, padding_mode="reflect"),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
    )


class Residual(nn.Module):
    """Two 3 x 3 convolutions beside the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        second = nn.Conv2d(channels, channels, 3, padding=1, padding_mode="reflect")
        self.body = nn.Sequential(_layer(channels, channels, 3), second, nn.BatchNorm2d(channels))

    def forward(self, features: Tensor) -> Tensor:
        """[N, C, H, W] to the same shape."""
        return features + self.body(features)


class Encoder(nn.Sequential):
    """To features of a quarter of the height and width."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__(_layer(before, width, 7), _layer(width, width * 2, 3, 2), _layer(width * 2, width * 4, 3, 2))


def _decoder(width: int, after: int, blocks: int) -> nn.Sequential:
    return nn.Sequential(
        *(Residual(width * 4) for _ in range(blocks)),
        nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
        _layer(width * 4, width * 2, 3),
        nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
        _layer(width * 2, width, 3),
        nn.Conv2d(width, after, 7, padding=3, padding_mode="reflect"),
    )


class Matting(nn.Module):
    """Four encoders; the image's features chosen together with each prior's; decoders for outline and colours."""

    def __init__(self, width: int, shared: int, own: int) -> None:
        super().__init__()
        features = width * 4
        self.image = Encoder(3, width)
        self.priors = nn.ModuleList(Encoder(channels, width) for channels in PRIORS)
        self.choices = nn.ModuleList(_layer(2 * features, width, 1) for _ in PRIORS)
        self.combine = _layer(features + width * len(PRIORS), features, 1)
        self.body = nn.Sequential(*(Residual(features) for _ in range(shared)))
        self.outline = _decoder(width, 1, own)
        self.colours = _decoder(width, 3, own)

    def forward(self, scene: Scene) -> tuple[Tensor, Tensor]:
        """The outline [N, 1, H, W] from 0 to 1, and the colours [N, 3, H, W] from -1 to 1."""
        image = self.image(scene.image)
        given = (scene.background, scene.outline, scene.motion)
        chosen = [
            choice(torch.cat([image, encoder(prior)], dim=1))
            for encoder, choice, prior in zip(self.priors, self.choices, given, strict=True)
        ]
        features = self.body(self.combine(torch.cat([image, *chosen], dim=1)))
        return self.outline(features).sigmoid(), self.colours(features).tanh()


class Critics(nn.Module):
    """Two discriminators of patches: one sees the image, the other half of its height and width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scales = nn.ModuleList(patch_discriminator(3, width) for _ in range(2))

    def forward(self, images: Tensor, target: float) -> Tensor:
        """How far the verdicts are from the target, a scalar."""
        full, half = (
            scale(seen) for scale, seen in zip(self.scales, (images, functional.avg_pool2d(images, 2)), strict=True)
        )
        return (full - target).square().mean() + (half - target).square().mean()


def _paste(outline: Tensor, colours: Tensor, background: Tensor) -> Tensor:
    return outline * colours + (1 - outline) * background


def _slope_difference(first: Tensor, second: Tensor) -> Tensor:
    difference = first - second
    return difference.diff(dim=-1).abs().mean() + difference.diff(dim=-2).abs().mean()


def imitation(made: tuple[Tensor, Tensor], taught: tuple[Tensor, Tensor], scene: Scene) -> Tensor:
    """The supervised part of the loss, a scalar: outline, its slopes, colours, and the image put together again."""
    (outline, colours), (taught_outline, taught_colours) = made, taught
    again = (_paste(outline, colours, scene.background) - scene.image).abs().mean()
    loss = 2 * (outline - taught_outline).abs().mean() + 4 * _slope_difference(outline, taught_outline)
    return loss + (colours - taught_colours).abs().mean() + again


def build(setting: Setting) -> Workload:
    """Images of 512 x 512 (64 x 64 in the tiny size); evaluation finds outline and colours."""
    width, shared, own, pixels = (4, 2, 1, 64) if setting.tiny else (64, 7, 3, 512)

    def random(channels: int) -> Tensor:
        shape = (setting.batch_size, channels, pixels, pixels)
        return torch.rand(shape, device=setting.device, dtype=setting.dtype) * 2 - 1

    scene = Scene(random(3), random(3), random(1), random(4))
    student = Matting(width, shared, own).to(setting.device, setting.dtype).train(setting.training)
    if not setting.training:
        return Workload(inference_step(setting, lambda: student(scene)), setting.batch_size, (student,))
    teacher = Matting(width, shared, own).to(setting.device, setting.dtype).eval().requires_grad_(False)
    critics = Critics(width).to(setting.device, setting.dtype)
    elsewhere = random(3)
    learning = torch.optim.Adam(student.parameters(), lr=1e-4)
    judging = torch.optim.Adam(critics.parameters(), lr=1e-5)

    def step() -> Tensor:
        critics.requires_grad_(False)
        learning.zero_grad(set_to_none=True)
        with setting.autocast_context():
            with torch.no_grad():
                taught = teacher(scene)
            outline, colours = student(scene)
            pasted = _paste(outline, colours, elsewhere)
            loss = critics(pasted, 1.0) + IMITATION * imitation((outline, colours), taught, scene)
        loss.backward()
        learning.step()
        critics.requires_grad_(True)
        judging.zero_grad(set_to_none=True)
        with setting.autocast_context():
            judged = (critics(scene.image, 1.0) + critics(pasted.detach(), 0.0)) / 2
        judged.backward()
        judging.step()
        return loss

    return Workload(step, setting.batch_size, (student, teacher, critics))
