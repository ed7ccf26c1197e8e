"""DeepRecommender (arXiv 1708.01715): a deep autoencoder of a user's ratings, with dense re-feeding."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from itertools import pairwise

import torch
from torch import Tensor, nn

from torchdiag.models.stepping import inference_step
from torchdiag.models.workload import Setting, Workload

RATED_SHARE = 0.01


class AutoEncoder(nn.Module):
    """Ratings [N, I], zero where there is none, to predicted ratings [N, I]; `widths` are those of the encoder."""

    def __init__(self, items: int, widths: list[int]) -> None:
        super().__init__()
        way = [items, *widths]
        layers: list[nn.Module] = []
        for before, after in pairwise(way):
            layers += [nn.Linear(before, after), nn.SELU()]
        layers.append(nn.Dropout(0.8))
        for before, after in pairwise(reversed(way)):
            layers += [nn.Linear(before, after), nn.SELU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, ratings: Tensor) -> Tensor:
        """Ratings of every item."""
        return self.layers(ratings)


def _loss(predicted: Tensor, ratings: Tensor) -> Tensor:
    """The mean squared error over the items that are rated."""
    rated = ratings != 0
    return ((predicted - ratings).square() * rated).sum() / rated.sum()


def build(setting: Setting) -> Workload:
    """197951 items, 512-512-1024 units; tiny: 2000 items, 32-32-64 units.

    A training step learns from the ratings, then from its own dense prediction of them (section 2.3 of the paper).
    """
    items, widths = (2000, [32, 32, 64]) if setting.tiny else (197_951, [512, 512, 1024])
    model = AutoEncoder(items, widths).to(setting.device, setting.dtype)
    shape = (setting.batch_size, items)
    stars = torch.randint(1, 6, shape, device=setting.device).to(setting.dtype)
    ratings = stars * (torch.rand(shape, device=setting.device) < RATED_SHARE)
    if not setting.training:
        model.eval()
        return Workload(inference_step(setting, lambda: model(ratings)), setting.batch_size, (model,))
    optimizer = torch.optim.SGD(model.parameters(), lr=5e-3, momentum=0.9)

    def learn(inputs: Tensor) -> tuple[Tensor, Tensor]:
        optimizer.zero_grad(set_to_none=True)
        with setting.autocast_context():
            predicted = model(inputs)
            loss = _loss(predicted, inputs)
        loss.backward()
        optimizer.step()
        return predicted.detach(), loss

    def step() -> Tensor:
        predicted, loss = learn(ratings)
        learn(predicted)
        return loss

    return Workload(step, setting.batch_size, (model,))
