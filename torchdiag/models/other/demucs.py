"""Demucs (arXiv 1911.13254): music apart into four sources, by convolutions around a bidirectional LSTM."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

SOURCES, CHANNELS, LEVELS = 4, 2, 6
KERNEL, STRIDE = 8, 4


def _trimmed(signal: Tensor, length: int) -> Tensor:
    start = (signal.shape[-1] - length) // 2
    return signal[..., start : start + length]


class Demucs(nn.Module):
    """Mixtures [N, 2, T] to sources [N, 4, 2, T'], T' at most T. `width`, 64 in the paper, doubles at each level."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        before = CHANNELS
        for level in range(LEVELS):
            after = width << level
            self.down.append(
                nn.Sequential(
                    nn.Conv1d(before, after, KERNEL, STRIDE), nn.ReLU(), nn.Conv1d(after, 2 * after, 1), nn.GLU(dim=1)
                )
            )
            widen: list[nn.Module] = [nn.Conv1d(after, 2 * after, 3, padding=1), nn.GLU(dim=1)]
            if level > 0:
                widen += [nn.ConvTranspose1d(after, before, KERNEL, STRIDE), nn.ReLU()]
            else:
                widen.append(nn.ConvTranspose1d(after, SOURCES * CHANNELS, KERNEL, STRIDE))
            self.up.insert(0, nn.Sequential(*widen))
            before = after
        self.recurrent = nn.LSTM(before, before, num_layers=2, bidirectional=True)
        self.join = nn.Linear(2 * before, before)

    def forward(self, mixtures: Tensor) -> Tensor:
        """The sources, aligned with the middle of the mixture."""
        signal, kept = mixtures, list[Tensor]()
        for level in self.down:
            signal = level(signal)
            kept.append(signal)
        signal = self.join(self.recurrent(signal.permute(2, 0, 1))[0]).permute(1, 2, 0)
        for level in self.up:
            signal = level(signal + _trimmed(kept.pop(), signal.shape[-1]))
        return signal.view(len(signal), SOURCES, CHANNELS, -1)


def _augmented(sources: Tensor) -> Tensor:
    """Random signs, and each source from another song of the batch: the paper's remixing, on the device."""
    signs = torch.randint(2, (len(sources), SOURCES, 1, 1), device=sources.device).to(sources.dtype) * 2 - 1
    songs = torch.rand(len(sources), SOURCES, device=sources.device).argsort(dim=0)
    return signs * sources[songs, torch.arange(SOURCES, device=sources.device)]


def build(setting: Setting) -> Workload:
    """Stereo pieces of 426888 samples (9.7 s); tiny: a sixteenth of the width, 13652 samples."""
    width, samples = (4, 13_652) if setting.tiny else (64, 426_888)
    model = Demucs(width).to(setting.device, setting.dtype)
    shape = (setting.batch_size, SOURCES, CHANNELS, samples)
    sources = torch.randn(shape, device=setting.device, dtype=setting.dtype)
    if not setting.training:
        model.eval()
        mixtures = sources.sum(dim=1)
        return Workload(inference_step(setting, lambda: model(mixtures)), setting.batch_size, (model,))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)

    def loss() -> Tensor:
        wanted = _augmented(sources)
        estimates = model(wanted.sum(dim=1))
        return functional.l1_loss(estimates, _trimmed(wanted, estimates.shape[-1]))

    return Workload(training_step(setting, optimizer, loss), setting.batch_size, (model,))
