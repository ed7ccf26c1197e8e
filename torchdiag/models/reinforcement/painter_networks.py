"""The networks of "Learning to paint" (arXiv 1903.04411): painter, critic, judge of pictures, renderer of strokes."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm


class Threshold(nn.Module):
    """TReLU: a rectifier about a learned threshold (arXiv 1704.03971)."""

    def __init__(self) -> None:
        super().__init__()
        self.threshold = nn.Parameter(torch.zeros(1))

    def forward(self, features: Tensor) -> Tensor:
        """Same shape as the input."""
        return (features - self.threshold).relu() + self.threshold


def _normalized(convolution: nn.Module) -> nn.Module:
    return weight_norm(convolution)


class _Residual(nn.Module):
    """Two 3x3 convolutions around a shortcut, batch-normalized with ReLU or weight-normalized with TReLU."""

    def __init__(self, before: int, after: int, stride: int, batch_norm: bool) -> None:
        super().__init__()

        def convolution(inputs: int, edge: int, step: int) -> nn.Module:
            if batch_norm:
                plain = nn.Conv2d(inputs, after, edge, step, edge // 2, bias=False)
                return nn.Sequential(plain, nn.BatchNorm2d(after))
            return _normalized(nn.Conv2d(inputs, after, edge, step, edge // 2))

        def activation() -> nn.Module:
            return nn.ReLU() if batch_norm else Threshold()

        self.body = nn.Sequential(convolution(before, 3, stride), activation(), convolution(after, 3, 1))
        self.shortcut = convolution(before, 1, stride) if stride != 1 or before != after else nn.Identity()
        self.activation = activation()

    def forward(self, features: Tensor) -> Tensor:
        return self.activation(self.body(features) + self.shortcut(features))


class ResNet18(nn.Sequential):
    """Images [N, C, P, P], P a multiple of 32, to outputs [N, O]: every stage halves, the first included."""

    def __init__(self, channels: int, width: int, outputs: int, batch_norm: bool) -> None:
        layers: list[nn.Module] = []
        if batch_norm:
            layers += [nn.Conv2d(channels, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        else:
            layers += [_normalized(nn.Conv2d(channels, width, 3, 2, 1)), Threshold()]
        before = width
        for stage in range(4):
            after = width << stage
            layers += [_Residual(before, after, 2, batch_norm), _Residual(after, after, 1, batch_norm)]
            before = after
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, outputs))


class Judge(nn.Sequential):
    """Picture and target [N, 6, P, P] to a score [N, 1]: how alike they look."""

    def __init__(self, width: int) -> None:
        widths = [6, width, 2 * width, 4 * width, 8 * width]
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [_normalized(nn.Conv2d(before, after, 5, 2, 2)), Threshold()]
        last = _normalized(nn.Conv2d(widths[-1], 1, 5, 2, 2))
        super().__init__(*layers, last, nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Renderer(nn.Module):
    """Ten numbers that shape a stroke [N, 10] to its picture [N, 8 E, 8 E]; `widths` are those of the linear layers."""

    def __init__(self, edge: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        way = (10, *widths, 16 * edge * edge)
        layers: list[nn.Module] = []
        for before, after in pairwise(way):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.dense, self.edge = nn.Sequential(*layers), edge
        stages: list[nn.Module] = []
        for before, between, after in ((16, 32, 32), (8, 16, 16), (4, 8, 4)):
            stages += [nn.Conv2d(before, between, 3, padding=1), nn.ReLU()]
            stages += [nn.Conv2d(between, after, 3, padding=1), nn.PixelShuffle(2)]
        self.convolutions = nn.Sequential(*stages)

    def forward(self, shapes: Tensor) -> Tensor:
        """How much paint each pixel gets, 0 to 1."""
        features = self.dense(shapes).view(len(shapes), 16, self.edge, self.edge)
        return self.convolutions(features).squeeze(1).sigmoid()


def gradient_penalty(judge: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor) -> Tensor:
    """How far the judge's slope between real and fake pictures [N, C, P, P] is from 1 (arXiv 1704.00028), a scalar."""
    share = torch.rand(len(real), 1, 1, 1, device=real.device, dtype=real.dtype)
    between = torch.lerp(fake, real, share).requires_grad_(True)
    (slope,) = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
    length = slope.flatten(1).square().sum(dim=1).sqrt()
    return (length - 1).square().mean()
