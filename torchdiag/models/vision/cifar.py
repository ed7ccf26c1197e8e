"""A small ResNet and a small DenseNet for images of 32 x 32, as taught with CIFAR-10."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from torchdiag.models.vision.classifying import classifier
from torchdiag.models.workload import Setting, Workload

CLASSES = 10
IMAGE = (3, 32, 32)


class ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut (arXiv 1512.03385); the first of a group halves the image."""

    def __init__(self, before: int, after: int, *, halve: bool) -> None:
        super().__init__()
        stride = 2 if halve else 1
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.shortcut = nn.Conv2d(before, after, 1, 2) if halve else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        """[N, before, H, W] to [N, after, H', W']."""
        return torch.relu(self.body(images) + self.shortcut(images))


class CifarResNet(nn.Sequential):
    """Three groups of blocks of 16, 32 and 64 channels."""

    def __init__(self, blocks: int) -> None:
        layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
        channels = 16
        for group, after in enumerate((16, 32, 64)):
            for block in range(blocks):
                layers.append(ResidualBlock(channels, after, halve=group > 0 and block == 0))
                channels = after
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


class DenseLayer(nn.Module):
    """Adds `growth` channels to its input (arXiv 1608.06993), through a bottleneck of twice as many."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, 2 * growth, 1, bias=False),
            nn.BatchNorm2d(2 * growth),
            nn.ReLU(),
            nn.Conv2d(2 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, images: Tensor) -> Tensor:
        """[N, C, H, W] to [N, C + growth, H, W]."""
        return torch.cat([self.body(images), images], dim=1)


class CifarDenseNet(nn.Sequential):
    """Four dense blocks; between them half of the channels and half of the image remain."""

    def __init__(self, depth: int, growth: int) -> None:
        channels = 2 * growth
        layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1)]
        for block in range(4):
            for _ in range(depth):
                layers.append(DenseLayer(channels, growth))
                channels += growth
            if block < 3:
                layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels // 2, 1, bias=False)]
                layers.append(nn.AvgPool2d(2))
                channels //= 2
        layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        super().__init__(*layers, nn.Linear(channels, CLASSES))


def resnet(setting: Setting) -> Workload:
    """A ResNet of 20 layers, trained with momentum."""
    model = CifarResNet(1 if setting.tiny else 3).to(setting.device, setting.dtype)
    return classifier(setting, model, IMAGE, CLASSES, _momentum)


def densenet(setting: Setting) -> Workload:
    """A DenseNet of four blocks of six layers, trained with AdamW."""
    model = CifarDenseNet(2 if setting.tiny else 6, 16).to(setting.device, setting.dtype)
    return classifier(setting, model, IMAGE, CLASSES, torch.optim.AdamW)


def _momentum(parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4)
