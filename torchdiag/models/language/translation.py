"""The Transformer of "Attention is all you need" (arXiv 1706.03762), base size, for translation."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.attention import DecoderLayer, EncoderLayer, LayerShape, causal, sinusoids
from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload


class Transformer(nn.Module):
    """Source [N, S] and shifted target [N, T] to logits [N, T, V]; one embedding serves both languages and output."""

    def __init__(self, vocabulary: int, length: int, shape: LayerShape, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, shape.width)
        nn.init.normal_(self.embedding.weight, std=shape.width**-0.5)
        self.positions: Tensor
        self.register_buffer("positions", sinusoids(length, shape.width), persistent=False)
        self.dropout = nn.Dropout(shape.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(shape) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(shape) for _ in range(layers))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """The logits of the word after each word of the target."""
        memory = self._embed(source)
        for layer in self.encoder:
            memory = layer(memory)
        vectors, allowed = self._embed(target), causal(target.shape[1], target.device)
        for layer in self.decoder:
            vectors = layer(vectors, memory, allowed)
        return functional.linear(vectors, self.embedding.weight)

    def _embed(self, tokens: Tensor) -> Tensor:
        vectors = self.embedding(tokens)
        return self.dropout(vectors * math.sqrt(vectors.shape[-1]) + self.positions[: tokens.shape[1]])


def build(setting: Setting) -> Workload:
    """Sentences of 32 word pieces of the paper's 37000; tiny: two layers of 64 units, 16 word pieces."""
    if setting.tiny:
        vocabulary, length = 1000, 16
        model = Transformer(vocabulary, length, LayerShape(64, 4, 256), layers=2)
    else:
        vocabulary, length = 37_000, 32
        model = Transformer(vocabulary, length, LayerShape(512, 8, 2048), layers=6)
    model = model.to(setting.device, setting.dtype).train(setting.training)
    source = torch.randint(vocabulary, (setting.batch_size, length), device=setting.device)
    target = torch.randint(vocabulary, (setting.batch_size, length + 1), device=setting.device)
    shifted, wanted = target[:, :-1].contiguous(), target[:, 1:].flatten()
    if not setting.training:
        return Workload(inference_step(setting, lambda: model(source, shifted)), setting.batch_size, (model,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    def loss() -> Tensor:
        return functional.cross_entropy(model(source, shifted).flatten(0, 1), wanted, label_smoothing=0.1)

    return Workload(training_step(setting, optimizer, loss), setting.batch_size, (model,))
