"""CLIP (arXiv 2103.00020) with ViT-B/32: texts and images as vectors in the same space."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from torchdiag.models.attention import causal


@dataclass(frozen=True, slots=True)
class ClipShape:
    """Sizes of both towers; `joint` is the width of the space they share, `pixels` the edge of an image."""

    words: int = 49_408
    length: int = 77
    text_width: int = 512
    image_width: int = 768
    layers: int = 12
    head_width: int = 64
    patch: int = 32
    pixels: int = 224
    joint: int = 512


def tower(width: int, layers: int, head_width: int) -> nn.ModuleList:
    """Transformer layers that norm first, without dropout."""
    return nn.ModuleList(
        nn.TransformerEncoderLayer(
            width, width // head_width, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        for _ in range(layers)
    )


class Clip(nn.Module):
    """Only encodes; neither training nor its temperature is here."""

    def __init__(self, shape: ClipShape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.words, shape.text_width)
        self.word_places = nn.Parameter(torch.randn(shape.length, shape.text_width) * 0.01)
        self.text_layers = tower(shape.text_width, shape.layers, shape.head_width)
        self.text_norm = nn.LayerNorm(shape.text_width)
        self.text_out = nn.Linear(shape.text_width, shape.joint, bias=False)
        self.patches = nn.Conv2d(3, shape.image_width, shape.patch, shape.patch, bias=False)
        self.summary = nn.Parameter(torch.randn(shape.image_width) * 0.02)
        places = (shape.pixels // shape.patch) ** 2 + 1
        self.patch_places = nn.Parameter(torch.randn(places, shape.image_width) * 0.02)
        self.image_norms = nn.ModuleList(nn.LayerNorm(shape.image_width) for _ in range(2))
        self.image_layers = tower(shape.image_width, shape.layers, shape.head_width)
        self.image_out = nn.Linear(shape.image_width, shape.joint, bias=False)

    def texts(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Words [N, L] to a vector [N, joint] of each text, and one [N, length, text_width] of each word."""
        words = words[:, : self.shape.length]
        vectors = self.words(words) + self.word_places
        hidden = ~causal(words.shape[1], words.device)
        for layer in self.text_layers:
            vectors = layer(vectors, src_mask=hidden)
        vectors = self.text_norm(vectors)
        return self.text_out(vectors[:, -1]), vectors

    def images(self, images: Tensor) -> Tensor:
        """Images [N, 3, H, W] to vectors [N, joint]."""
        edge = self.shape.pixels
        images = nn.functional.interpolate(images, (edge, edge), mode="bilinear")
        patches = self.patches(images).flatten(2).transpose(1, 2)
        vectors = torch.cat([self.summary.expand(len(images), 1, -1), patches], dim=1) + self.patch_places
        vectors = self.image_norms[0](vectors)
        for layer in self.image_layers:
            vectors = layer(vectors)
        return self.image_out(self.image_norms[1](vectors[:, 0]))
