"""Tacotron 2 (arXiv 1712.05884): characters to a mel spectrogram through location-sensitive attention.

Sizes are the paper's, with 148 symbols and 80 mel bands.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload


@dataclass(frozen=True, slots=True)
class Sizes:
    """The widths of the network; the defaults are the paper's."""

    symbols: int = 148
    mels: int = 80
    encoder: int = 512
    prenet: int = 256
    recurrent: int = 1024
    attention: int = 128
    location_filters: int = 32
    postnet: int = 512


_TINY: Final = Sizes(
    symbols=40, mels=16, encoder=32, prenet=16, recurrent=64, attention=16, location_filters=4, postnet=32
)


def _convolution(before: int, after: int, activation: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Conv1d(before, after, 5, padding=2), nn.BatchNorm1d(after), activation, nn.Dropout(0.5))


class Encoder(nn.Module):
    """Symbols [N, L] to vectors [N, L, E]: an embedding, three convolutions, a bidirectional LSTM."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.encoder
        self.embedding = nn.Embedding(sizes.symbols, width)
        self.convolutions = nn.Sequential(*(_convolution(width, width, nn.ReLU()) for _ in range(3)))
        self.recurrent = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)

    def forward(self, symbols: Tensor) -> Tensor:
        """One vector a symbol."""
        features = self.convolutions(self.embedding(symbols).transpose(1, 2))
        vectors, _ = self.recurrent(features.transpose(1, 2))
        return vectors


class LocationAttention(nn.Module):
    """Where to read next, from what is asked, what is there, and where was read so far."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.query = nn.Linear(sizes.recurrent, sizes.attention, bias=False)
        self.memory = nn.Linear(sizes.encoder, sizes.attention, bias=False)
        self.filters = nn.Conv1d(2, sizes.location_filters, 31, padding=15, bias=False)
        self.location = nn.Linear(sizes.location_filters, sizes.attention, bias=False)
        self.energy = nn.Linear(sizes.attention, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor, read: Tensor) -> Tensor:
        """Weights [N, L] from a query [N, R], projected memory [N, L, A], last and summed weights [N, 2, L]."""
        location = self.location(self.filters(read).transpose(1, 2))
        return self.energy(torch.tanh(self.query(query).unsqueeze(1) + location + keys)).squeeze(-1).softmax(dim=-1)


@dataclass(slots=True)
class _State:
    attention: tuple[Tensor, Tensor]
    decoder: tuple[Tensor, Tensor]
    weights: Tensor
    summed: Tensor
    context: Tensor


class Decoder(nn.Module):
    """One mel frame after the other, from the frame before and what attention reads."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.prenet_first = nn.Linear(sizes.mels, sizes.prenet, bias=False)
        self.prenet_second = nn.Linear(sizes.prenet, sizes.prenet, bias=False)
        self.attention_cell = nn.LSTMCell(sizes.prenet + sizes.encoder, sizes.recurrent)
        self.attention = LocationAttention(sizes)
        self.decoder_cell = nn.LSTMCell(sizes.recurrent + sizes.encoder, sizes.recurrent)
        self.frame = nn.Linear(sizes.recurrent + sizes.encoder, sizes.mels)
        self.stop = nn.Linear(sizes.recurrent + sizes.encoder, 1)

    def _prenet(self, frames: Tensor) -> Tensor:
        # Its dropout stays on in evaluation: section 2.2 of the paper.
        frames = functional.dropout(self.prenet_first(frames).relu(), 0.5)
        return functional.dropout(self.prenet_second(frames).relu(), 0.5)

    def _start(self, memory: Tensor) -> _State:
        cell, hidden = (memory.new_zeros(len(memory), self.sizes.recurrent) for _ in range(2))
        nowhere = memory.new_zeros(memory.shape[:2])
        return _State((hidden, cell), (hidden, cell), nowhere, nowhere, memory.new_zeros(len(memory), memory.shape[2]))

    def _next(self, before: Tensor, memory: Tensor, keys: Tensor, state: _State) -> tuple[Tensor, Tensor]:
        hidden, cell = self.attention_cell(torch.cat([before, state.context], dim=1), state.attention)
        state.attention = (functional.dropout(hidden, 0.1, self.training), cell)
        read = torch.stack([state.weights, state.summed], dim=1)
        state.weights = self.attention(state.attention[0], keys, read)
        state.summed = state.summed + state.weights
        state.context = torch.bmm(state.weights.unsqueeze(1), memory).squeeze(1)
        hidden, cell = self.decoder_cell(torch.cat([state.attention[0], state.context], dim=1), state.decoder)
        state.decoder = (functional.dropout(hidden, 0.1, self.training), cell)
        both = torch.cat([state.decoder[0], state.context], dim=1)
        return self.frame(both), self.stop(both)

    def teach(self, memory: Tensor, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Frames [N, T, M] and stop logits [N, T], each step seeing the true frame before it."""
        state, keys = self._start(memory), self.attention.memory(memory)
        shifted = torch.cat([torch.zeros_like(frames[:, :1]), frames[:, :-1]], dim=1)
        steps = [self._next(before, memory, keys, state) for before in self._prenet(shifted).unbind(dim=1)]
        return torch.stack([frame for frame, _ in steps], dim=1), torch.cat([stop for _, stop in steps], dim=1)

    def speak(self, memory: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """`count` frames and stop logits, each step seeing the frame before it as it came out."""
        state, keys = self._start(memory), self.attention.memory(memory)
        frame = memory.new_zeros(len(memory), self.sizes.mels)
        frames, stops = list[Tensor](), list[Tensor]()
        for _ in range(count):
            frame, stop = self._next(self._prenet(frame), memory, keys, state)
            frames.append(frame)
            stops.append(stop)
        return torch.stack(frames, dim=1), torch.cat(stops, dim=1)


class Tacotron2(nn.Module):
    """Encoder, decoder, and five convolutions that correct the finished spectrogram."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.encoder, self.decoder = Encoder(sizes), Decoder(sizes)
        widths = [sizes.mels, *[sizes.postnet] * 4, sizes.mels]
        activations = [*(nn.Tanh() for _ in range(4)), nn.Identity()]
        self.postnet = nn.Sequential(
            *(_convolution(*pair) for pair in zip(widths[:-1], widths[1:], activations, strict=True))
        )

    def forward(self, symbols: Tensor, frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Frames before and after correction [N, T, M], and stop logits [N, T]."""
        return self._corrected(*self.decoder.teach(self.encoder(symbols), frames))

    def speak(self, symbols: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """The same, of a spectrogram that nobody has given it."""
        return self._corrected(*self.decoder.speak(self.encoder(symbols), count))

    def _corrected(self, frames: Tensor, stops: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return frames, frames + self.postnet(frames.transpose(1, 2)).transpose(1, 2), stops


def build(setting: Setting) -> Workload:
    """128 symbols and 400 frames (4.6 s of speech); tiny: narrow, 16 symbols and 12 frames.

    Training is taught each true frame; evaluation speaks, for a number of frames that does not depend on the weights.
    """
    sizes, symbols, frames = (_TINY, 16, 12) if setting.tiny else (Sizes(), 128, 400)
    model = Tacotron2(sizes).to(setting.device, setting.dtype).train(setting.training)
    text = torch.randint(sizes.symbols, (setting.batch_size, symbols), device=setting.device)
    if not setting.training:
        # Speaking calls parts, never the whole: they are what a compiler can be pointed at.
        parts = (model, model.encoder, model.decoder.attention, model.postnet)
        return Workload(inference_step(setting, lambda: model.speak(text, frames)), setting.batch_size, parts)
    speech = torch.randn(setting.batch_size, frames, sizes.mels, device=setting.device, dtype=setting.dtype)
    ends = torch.zeros(setting.batch_size, frames, device=setting.device, dtype=setting.dtype)
    ends[:, -1] = 1
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6)

    def loss() -> Tensor:
        rough, corrected, stops = model(text, speech)
        stop_loss = functional.binary_cross_entropy_with_logits(stops, ends)
        return functional.mse_loss(rough, speech) + functional.mse_loss(corrected, speech) + stop_loss

    return Workload(training_step(setting, optimizer, loss), setting.batch_size, (model,))
