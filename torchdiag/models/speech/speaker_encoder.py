"""A speaker encoder: the LSTM with projection of arXiv 1710.10467 under the angular prototypical loss of 2003.11982."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

BANDS, FRAMES = 40, 50


class SpeakerEncoder(nn.Module):
    """Spectrograms [N, T, 40] to directions [N, P] of length one: the last of three layers' last output."""

    def __init__(self, width: int, projection: int) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(BANDS, width, num_layers=3, proj_size=projection, batch_first=True)

    def forward(self, spectrograms: Tensor) -> Tensor:
        """One direction a spectrogram."""
        vectors, _ = self.recurrent(spectrograms)
        return functional.normalize(vectors[:, -1], dim=-1)


class AngularPrototypical(nn.Module):
    """Each speaker's one utterance has to be nearest in angle to the same speaker's other utterance."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.tensor(10.0)), nn.Parameter(torch.tensor(-5.0))

    def forward(self, directions: Tensor) -> Tensor:
        """The loss, a scalar, of directions [speakers, 2, P]."""
        cosines = directions[:, 0] @ directions[:, 1].T
        logits = self.scale.clamp(min=1e-6) * cosines + self.shift
        return functional.cross_entropy(logits, torch.arange(len(logits), device=logits.device))


def build(setting: Setting) -> Workload:
    """768 units projected to 256; a batch of N is N speakers with two utterances each in training. Tiny: 64 to 32."""
    width, projection = (64, 32) if setting.tiny else (768, 256)
    model = SpeakerEncoder(width, projection).to(setting.device, setting.dtype)
    utterances = 2 if setting.training else 1
    shape = (setting.batch_size * utterances, FRAMES, BANDS)
    spectrograms = torch.randn(shape, device=setting.device, dtype=setting.dtype)
    if not setting.training:
        model.eval()
        return Workload(inference_step(setting, lambda: model(spectrograms)), setting.batch_size, (model,))
    criterion = AngularPrototypical().to(setting.device, setting.dtype)
    optimizer = torch.optim.Adam([*model.parameters(), *criterion.parameters()], lr=1e-4)

    def loss() -> Tensor:
        return criterion(model(spectrograms).view(setting.batch_size, 2, projection))

    return Workload(training_step(setting, optimizer, loss), setting.batch_size, (model, criterion))
