"""Super SloMo (arXiv 1712.00080): a frame between two frames, by optical flow that two U-Nets estimate and refine."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

MIDDLE = 0.5
"""When the frame in between is, from 0 to 1."""
SLOPE = 0.1


class Level(nn.Sequential):
    """Two convolutions with leaky activations."""

    def __init__(self, before: int, after: int, kernel: int) -> None:
        super().__init__(
            nn.Conv2d(before, after, kernel, padding=kernel // 2),
            nn.LeakyReLU(SLOPE),
            nn.Conv2d(after, after, kernel, padding=kernel // 2),
            nn.LeakyReLU(SLOPE),
        )


class FlowNet(nn.Module):
    """A U-Net of five levels: `before` channels in, `after` out, height and width multiples of 32."""

    def __init__(self, before: int, after: int, width: int) -> None:
        super().__init__()
        channels = [width * factor for factor in (1, 2, 4, 8, 16, 16)]
        self.first = Level(before, width, 7)
        self.down = nn.ModuleList(
            Level(above, below, 5 if depth == 0 else 3) for depth, (above, below) in enumerate(pairwise(channels))
        )
        self.up = nn.ModuleList(
            nn.ModuleList([nn.Conv2d(below, above, 3, padding=1), nn.Conv2d(2 * above, above, 3, padding=1)])
            for above, below in reversed(list(pairwise(channels)))
        )
        self.last = nn.Conv2d(width, after, 3, padding=1)

    def forward(self, frames: Tensor) -> Tensor:
        """[N, before, H, W] to [N, after, H, W]."""
        levels = [self.first(frames)]
        for level in self.down:
            levels.append(level(functional.avg_pool2d(levels[-1], 2)))
        current = levels.pop()
        for level in self.up:
            enlarge, merge = cast(nn.ModuleList, level)
            larger = functional.interpolate(current, scale_factor=2, mode="bilinear")
            enlarged = functional.leaky_relu(enlarge(larger), SLOPE)
            current = functional.leaky_relu(merge(torch.cat([enlarged, levels.pop()], dim=1)), SLOPE)
        return functional.leaky_relu(self.last(current), SLOPE)


def warp(frame: Tensor, flow: Tensor) -> Tensor:
    """The frame [N, C, H, W] looked up where `flow` [N, 2, H, W] (pixels, x before y) points."""
    height, width = frame.shape[-2:]
    y, x = torch.meshgrid(
        torch.arange(height, device=frame.device, dtype=frame.dtype),
        torch.arange(width, device=frame.device, dtype=frame.dtype),
        indexing="ij",
    )
    grid = torch.stack([2 * (x + flow[:, 0]) / width - 1, 2 * (y + flow[:, 1]) / height - 1], dim=-1)
    return functional.grid_sample(frame, grid, align_corners=False)


class Between(nn.Module):
    """Two frames [N, 3, H, W] to the one in the middle, with the flows it was made with."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.flow = FlowNet(6, 4, width)
        self.refine = FlowNet(20, 5, width)

    def forward(self, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The frame; the flows from first to last and back; both frames warped to the middle."""
        there, back = self.flow(torch.cat([first, last], dim=1)).chunk(2, dim=1)
        to_first = -(1 - MIDDLE) * MIDDLE * there + MIDDLE * MIDDLE * back
        to_last = (1 - MIDDLE) ** 2 * there - MIDDLE * (1 - MIDDLE) * back
        guesses = (warp(first, to_first), warp(last, to_last))
        seen = torch.cat([first, last, there, back, to_last, to_first, guesses[1], guesses[0]], dim=1)
        refined = self.refine(seen)
        to_first, to_last = to_first + refined[:, :2], to_last + refined[:, 2:4]
        visible = refined[:, 4:5].sigmoid()
        from_first, from_last = warp(first, to_first), warp(last, to_last)
        share_first, share_last = (1 - MIDDLE) * visible, MIDDLE * (1 - visible)
        frame = (share_first * from_first + share_last * from_last) / (share_first + share_last)
        return frame, there, back, from_first, from_last


def _smoothness(flow: Tensor) -> Tensor:
    return (flow[..., 1:] - flow[..., :-1]).abs().mean() + (flow[..., 1:, :] - flow[..., :-1, :]).abs().mean()


def perceiving(groups: Sequence[Sequence[int]]) -> nn.Sequential:
    """3 x 3 convolutions of the given widths, halved between groups, the last without activation: VGG (1409.1556)."""
    layers: list[nn.Module] = []
    channels = 3
    for group in groups:
        for after in group:
            layers += [nn.Conv2d(channels, after, 3, padding=1), nn.ReLU(inplace=True)]
            channels = after
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers[:-2])


def build(setting: Setting) -> Workload:
    """Frames of 352 x 352; the perceptual loss looks at the end of VGG-16's fourth group of convolutions."""
    width, pixels = (2, 32) if setting.tiny else (32, 352)
    model = Between(width).to(setting.device, setting.dtype)
    shape = (setting.batch_size, 3, pixels, pixels)
    first, middle, last = (torch.rand(shape, device=setting.device, dtype=setting.dtype) for _ in range(3))
    if not setting.training:
        model.eval()
        forward = inference_step(setting, lambda: model(first, last)[0])
        return Workload(forward, setting.batch_size, (model,))
    groups = ((4,), (8,)) if setting.tiny else ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512))
    features = perceiving(groups).to(setting.device, setting.dtype).requires_grad_(False)

    def loss() -> Tensor:
        frame, there, back, from_first, from_last = model(first, last)
        reconstruction = (frame - middle).abs().mean()
        warped = (from_first - middle).abs().mean() + (from_last - middle).abs().mean()
        warped = warped + (warp(first, back) - last).abs().mean() + (warp(last, there) - first).abs().mean()
        perceived = functional.mse_loss(features(frame), features(middle))
        return 204 * reconstruction + 102 * warped + 0.005 * perceived + _smoothness(there) + _smoothness(back)

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    return Workload(training_step(setting, optimizer, loss), setting.batch_size, (model, features))
