"""Speech-Transformer (Dong, Xu and Xu, ICASSP 2018): filter banks to characters, with a beam search in evaluation."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.attention import DecoderLayer, EncoderLayer, LayerShape, causal, sinusoids
from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

BEAMS = 5
START = 0


_PAPER: Final = LayerShape(512, 8, 2048)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of the network, of the utterances (vectors of `features`: four frames of 80 bands), and of their transcripts."""

    layers: int = 6
    shape: LayerShape = _PAPER
    features: int = 320
    characters: int = 4233
    utterance: int = 256
    transcript: int = 24


_TINY: Final = Sizes(layers=2, shape=LayerShape(64, 4, 128), features=32, characters=100, utterance=24, transcript=6)


class SpeechTransformer(nn.Module):
    """Utterances [N, U, F] and shifted characters [N, T] to logits [N, T, C]."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, dropout = sizes.shape.width, sizes.shape.dropout
        self.entrance = nn.Sequential(nn.Linear(sizes.features, width), nn.LayerNorm(width))
        self.character = nn.Embedding(sizes.characters, width)
        nn.init.normal_(self.character.weight, std=width**-0.5)
        self.positions: Tensor
        self.register_buffer("positions", sinusoids(max(sizes.utterance, sizes.transcript), width), persistent=False)
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.ModuleList(EncoderLayer(sizes.shape) for _ in range(sizes.layers))
        self.decoder = nn.ModuleList(DecoderLayer(sizes.shape) for _ in range(sizes.layers))

    def forward(self, utterances: Tensor, characters: Tensor) -> Tensor:
        """The logits of the character after each character."""
        return self.decode(self.encode(utterances), characters)

    def encode(self, utterances: Tensor) -> Tensor:
        """The memory [N, U, W]."""
        memory = self.dropout(self.entrance(utterances) + self.positions[: utterances.shape[1]])
        for layer in self.encoder:
            memory = layer(memory)
        return memory

    def decode(self, memory: Tensor, characters: Tensor) -> Tensor:
        """Logits [N, T, C]; they come from the embedding's own weights."""
        vectors = self.character(characters) * math.sqrt(memory.shape[-1])
        vectors = self.dropout(vectors + self.positions[: characters.shape[1]])
        allowed = causal(characters.shape[1], characters.device)
        for layer in self.decoder:
            vectors = layer(vectors, memory, allowed)
        return functional.linear(vectors, self.character.weight)

    def recognize(self, utterances: Tensor, count: int) -> Tensor:
        """The likeliest `count` characters [N, count] by beam search, which never waits for the device."""
        batch = len(utterances)
        memory = self.encode(utterances).repeat_interleave(BEAMS, dim=0)
        characters = torch.full((batch * BEAMS, 1), START, device=memory.device)
        # All beams start alike, so that only the first may go on at first.
        scores = torch.arange(BEAMS, device=memory.device).clamp(max=1) * -1e4
        scores = scores.to(torch.float32).repeat(batch, 1)
        first = torch.arange(batch, device=memory.device).unsqueeze(1) * BEAMS
        for _ in range(count):
            likelihood = self.decode(memory, characters)[:, -1].float().log_softmax(dim=-1)
            options = (scores.unsqueeze(-1) + likelihood.view(batch, BEAMS, -1)).flatten(1)
            scores, chosen = options.topk(BEAMS, dim=1)
            beams = (first + chosen // likelihood.shape[-1]).flatten()
            added = (chosen % likelihood.shape[-1]).flatten().unsqueeze(1)
            characters = torch.cat([characters[beams], added], dim=1)
        return characters.view(batch, BEAMS, -1)[:, 0, 1:]


def build(setting: Setting) -> Workload:
    """256 vectors (about 8 s of speech) and 24 characters of AISHELL's 4233; tiny: narrow, two layers, 6 characters."""
    sizes = _TINY if setting.tiny else Sizes()
    model = SpeechTransformer(sizes).to(setting.device, setting.dtype).train(setting.training)
    shape = (setting.batch_size, sizes.utterance, sizes.features)
    utterances = torch.randn(shape, device=setting.device, dtype=setting.dtype)
    if not setting.training:
        step = inference_step(setting, lambda: model.recognize(utterances, sizes.transcript))
        # The search calls layers, never the whole: they are what a compiler can be pointed at.
        return Workload(step, setting.batch_size, (model, *model.encoder, *model.decoder))
    characters = torch.randint(sizes.characters, (setting.batch_size, sizes.transcript + 1), device=setting.device)
    shifted, wanted = characters[:, :-1].contiguous(), characters[:, 1:].flatten()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    def loss() -> Tensor:
        return functional.cross_entropy(model(utterances, shifted).flatten(0, 1), wanted, label_smoothing=0.1)

    return Workload(training_step(setting, optimizer, loss), setting.batch_size, (model,))
