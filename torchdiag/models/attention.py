"""Multi-head attention and the layers around it, as "Attention is all you need" (arXiv 1706.03762) defines them.

Scores, softmax and weighted sum are separate operations here, as in the programs of that time; the library models and
nanogpt use the fused operation.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class LayerShape:
    """`width` of the vectors, split among `heads`; `hidden` units in between; `dropout` is a share from 0 to 1."""

    width: int
    heads: int
    hidden: int
    dropout: float = 0.1
    activation: Literal["relu", "gelu"] = "relu"


class MultiHead(nn.Module):
    """Queries [N, Q, W] that look into a memory [N, M, W]."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.query = nn.Linear(shape.width, shape.width)
        self.key = nn.Linear(shape.width, shape.width)
        self.value = nn.Linear(shape.width, shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, queries: Tensor, memory: Tensor, allowed: Tensor | None = None) -> Tensor:
        """Same shape as the queries. `allowed` (bool, broadcast to [N, heads, Q, M]) says what may be looked at."""
        query, key, value = (
            self._split(self.query(queries)),
            self._split(self.key(memory)),
            self._split(self.value(memory)),
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        if allowed is not None:
            scores = scores.masked_fill(~allowed, float("-inf"))
        mixed = self.dropout(scores.softmax(dim=-1)) @ value
        return self.out(mixed.transpose(1, 2).flatten(2))

    def _split(self, vectors: Tensor) -> Tensor:
        batch, length, width = vectors.shape
        return vectors.view(batch, length, self.heads, width // self.heads).transpose(1, 2)


def _feed_forward(shape: LayerShape) -> nn.Sequential:
    activation = nn.ReLU() if shape.activation == "relu" else nn.GELU()
    return nn.Sequential(nn.Linear(shape.width, shape.hidden), activation, nn.Linear(shape.hidden, shape.width))


class EncoderLayer(nn.Module):
    """Self-attention and two linear layers, each added to its input and normalized after."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.attention, self.attention_norm = MultiHead(shape), nn.LayerNorm(shape.width)
        self.feed_forward, self.feed_forward_norm = _feed_forward(shape), nn.LayerNorm(shape.width)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, vectors: Tensor, allowed: Tensor | None = None) -> Tensor:
        """Vectors [N, L, W] to the same shape."""
        vectors = self.attention_norm(vectors + self.dropout(self.attention(vectors, vectors, allowed)))
        return self.feed_forward_norm(vectors + self.dropout(self.feed_forward(vectors)))


class DecoderLayer(nn.Module):
    """Self-attention, attention to the encoder's output, and two linear layers, each added and normalized after."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.attention, self.attention_norm = MultiHead(shape), nn.LayerNorm(shape.width)
        self.cross, self.cross_norm = MultiHead(shape), nn.LayerNorm(shape.width)
        self.feed_forward, self.feed_forward_norm = _feed_forward(shape), nn.LayerNorm(shape.width)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, vectors: Tensor, memory: Tensor, allowed: Tensor) -> Tensor:
        """Vectors [N, L, W] and the encoder's output [N, M, W] to [N, L, W]."""
        vectors = self.attention_norm(vectors + self.dropout(self.attention(vectors, vectors, allowed)))
        vectors = self.cross_norm(vectors + self.dropout(self.cross(vectors, memory)))
        return self.feed_forward_norm(vectors + self.dropout(self.feed_forward(vectors)))


def sinusoids(length: int, width: int) -> Tensor:
    """Positions [L, W]: sines in the even columns and cosines in the odd ones, of wavelengths 2 pi to 20000 pi."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
    angles = torch.arange(length).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def causal(length: int, device: torch.device) -> Tensor:
    """Which positions may look at which [L, L], bool: at themselves and before."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
