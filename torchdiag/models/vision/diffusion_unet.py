"""A U-Net that predicts noise (arXiv 2006.11239), told the time, an image's vector, words, and a smaller image."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.attention import sinusoids

STEPS = 1000
"""Degrees of noise that a network is taught."""


@dataclass(frozen=True, slots=True)
class UnetShape:
    """`width` channels at the finest level, times `factors` at each; `joint` and `words` are widths of what it is told.

    `words` is 0 for one that is told no words; `larger` for one that enlarges a smaller image.
    """

    width: int
    factors: tuple[int, ...]
    joint: int
    words: int = 0
    larger: bool = False
    groups: int = 8


class Block(nn.Module):
    """Two convolutions beside a shortcut; what the network is told scales and shifts the channels between them."""

    def __init__(self, before: int, after: int, told: int, groups: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(groups, before), nn.SiLU(), nn.Conv2d(before, after, 3, padding=1))
        self.told = nn.Linear(told, 2 * after)
        self.norm = nn.GroupNorm(groups, after)
        self.second = nn.Sequential(nn.SiLU(), nn.Conv2d(after, after, 3, padding=1))
        self.shortcut = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, features: Tensor, told: Tensor) -> Tensor:
        """[N, before, H, W] to [N, after, H, W]."""
        scale, shift = self.told(functional.silu(told))[:, :, None, None].chunk(2, dim=1)
        return self.second(self.norm(self.first(features)) * (1 + scale) + shift) + self.shortcut(features)


class Looking(nn.Module):
    """Every place looks at every place, and at the words."""

    def __init__(self, channels: int, words: int, groups: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        self.words = nn.Linear(words, channels) if words else None
        self.attention = nn.MultiheadAttention(channels, groups, batch_first=True)

    def forward(self, features: Tensor, words: Tensor) -> Tensor:
        """[N, C, H, W] to the same shape."""
        places = self.norm(features).flatten(2).transpose(1, 2)
        seen = places if self.words is None else torch.cat([places, self.words(words)], dim=1)
        found, _ = self.attention(places, seen, seen, need_weights=False)
        return features + found.transpose(1, 2).view_as(features)


class Unet(nn.Module):
    """Two blocks a level, halved between levels; attention at the coarsest."""

    def __init__(self, shape: UnetShape) -> None:
        super().__init__()
        self.shape = shape
        told, groups = 4 * shape.width, shape.groups
        channels = [shape.width * factor for factor in shape.factors]
        self.time = nn.Sequential(nn.Linear(shape.width, told), nn.SiLU(), nn.Linear(told, told))
        self.register_buffer("times", sinusoids(STEPS, shape.width), persistent=False)
        self.vector = nn.Linear(shape.joint, told)
        self.first = nn.Conv2d(6 if shape.larger else 3, channels[0], 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for before, after in pairwise([channels[0], *channels]):
            blocks = [Block(before, after, told, groups), Block(after, after, told, groups)]
            self.down.append(nn.ModuleList(blocks))
        deepest = channels[-1]
        self.middle = nn.ModuleList(Block(deepest, deepest, told, groups) for _ in range(2))
        self.looking = Looking(deepest, shape.words, groups)
        for before, after in pairwise(reversed([channels[0], *channels])):
            blocks = [Block(2 * before, before, told, groups), Block(before, after, told, groups)]
            self.up.append(nn.ModuleList(blocks))
        self.last = nn.Sequential(nn.GroupNorm(groups, channels[0]), nn.SiLU(), nn.Conv2d(channels[0], 3, 3, padding=1))

    def forward(self, noisy: Tensor, times: Tensor, vector: Tensor, words: Tensor, smaller: Tensor | None) -> Tensor:
        """The noise in images [N, 3, H, W] at times [N], given vectors [N, joint], words [N, L, W], smaller images."""
        if smaller is not None:
            noisy = torch.cat([noisy, functional.interpolate(smaller, noisy.shape[-2:], mode="bilinear")], dim=1)
        table = self.times
        assert isinstance(table, Tensor)
        told = self.time(table[times].to(noisy.dtype)) + self.vector(vector)
        features, kept = self.first(noisy), list[Tensor]()
        for depth, (first, second) in enumerate(_pairs(self.down)):
            if depth:
                features = functional.avg_pool2d(features, 2)
            features = second(first(features, told), told)
            kept.append(features)
        features = self.middle[0](features, told)
        features = self.middle[1](self.looking(features, words), told)
        for depth, (first, second) in enumerate(_pairs(self.up)):
            if depth:
                features = functional.interpolate(features, scale_factor=2.0, mode="nearest")
            features = second(first(torch.cat([features, kept.pop()], dim=1), told), told)
        return self.last(features)


def _pairs(levels: nn.ModuleList) -> list[tuple[nn.Module, nn.Module]]:
    pairs: list[tuple[nn.Module, nn.Module]] = []
    for level in levels:
        assert isinstance(level, nn.ModuleList)
        pairs.append((level[0], level[1]))
    return pairs
