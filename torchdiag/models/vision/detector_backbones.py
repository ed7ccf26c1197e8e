"""Residual networks as detectors use them: norms and first layers frozen, features of several stages, pyramids."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# torch leaves parts of its own signatures untyped.

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor, nn
from torchvision.models.resnet import Bottleneck
from torchvision.ops import FeaturePyramidNetwork, FrozenBatchNorm2d
from torchvision.ops.feature_pyramid_network import ExtraFPNBlock

_EXPANSION = 4
"""A bottleneck gives four times the channels that it works with."""


@dataclass(frozen=True, slots=True)
class Depth:
    """Blocks in each of the four stages, and the channels that the first of them works with."""

    blocks: tuple[int, int, int, int]
    width: int = 64

    def channels(self, stage: int) -> int:
        """Channels that stage 1 to 4 gives; 0 is what comes before the first."""
        return self.width if stage == 0 else self.width * _EXPANSION << (stage - 1)


RESNET50, RESNET101 = Depth((3, 4, 6, 3)), Depth((3, 4, 23, 3))
TINY50, TINY101 = Depth((1, 1, 2, 1), 8), Depth((1, 1, 4, 1), 8)


def stage(depth: Depth, number: int, stride: int, dilation: int = 1) -> nn.Sequential:
    """Stage 1 to 4 (arXiv 1512.03385); the first block changes the size of the image."""
    before, after = depth.channels(number - 1), depth.channels(number)
    shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), FrozenBatchNorm2d(after))
    frozen = cast(Any, FrozenBatchNorm2d)
    within = after // _EXPANSION
    blocks = [Bottleneck(before, within, stride, shortcut, dilation=dilation, norm_layer=frozen)]
    for _ in range(depth.blocks[number - 1] - 1):
        blocks.append(Bottleneck(after, within, dilation=dilation, norm_layer=frozen))
    return nn.Sequential(*blocks)


class Stages(nn.Module):
    """Images [N, 3, H, W] to the features of the stages in `kept`, finest first.

    `dilated` keeps the fourth stage at the third's stride of 16. Stem and first stage are not trained.
    """

    def __init__(self, depth: Depth, kept: Sequence[int], *, dilated: bool = False) -> None:
        super().__init__()
        self.kept = tuple(kept)
        self.out_channels = depth.channels(self.kept[-1])
        self.stem = nn.Sequential(
            nn.Conv2d(3, depth.width, 7, 2, 3, bias=False),
            FrozenBatchNorm2d(depth.width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        self.stages = nn.ModuleList()
        for number in range(1, self.kept[-1] + 1):
            widened = dilated and number == 4
            stride = 1 if number == 1 or widened else 2
            self.stages.append(stage(depth, number, stride, dilation=2 if widened else 1))
        for early in (self.stem, self.stages[0]):
            early.requires_grad_(False)

    def forward(self, images: Tensor) -> OrderedDict[str, Tensor]:
        """By "0", "1" and so on."""
        features, found = self.stem(images), list[Tensor]()
        for number, layers in enumerate(self.stages, start=1):
            features = layers(features)
            if number in self.kept:
                found.append(features)
        return OrderedDict((str(index), level) for index, level in enumerate(found))


class Pyramid(nn.Module):
    """Stages whose features all get `width` channels, the coarser added to the finer (arXiv 1612.03144)."""

    def __init__(self, depth: Depth, kept: Sequence[int], width: int, coarser: ExtraFPNBlock) -> None:
        super().__init__()
        self.out_channels = width
        self.body = Stages(depth, kept)
        self.fpn = FeaturePyramidNetwork([depth.channels(number) for number in kept], width, coarser)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        """By "0", "1" and so on, and a name for each level that the last block adds."""
        return self.fpn(self.body(images))
