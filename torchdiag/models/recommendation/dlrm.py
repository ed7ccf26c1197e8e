"""DLRM (arXiv 1906.00091): embedding bags and a dense tower that meet in pairwise dot products."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload


def _tower(widths: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers)


class Dlrm(nn.Module):
    """Dense features [N, D] and indices [T, N, L] of T tables to a click logit [N]."""

    def __init__(self, dense: int, tables: int, rows: int, width: int, bottom: list[int], top: list[int]) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = _tower([dense, *bottom, width])
        pairs = (tables + 1) * tables // 2
        self.top = _tower([width + pairs, *top])
        self.click = nn.Linear(top[-1], 1)
        self.first: Tensor
        self.second: Tensor
        first, second = torch.tril_indices(tables + 1, tables + 1, offset=-1)
        self.register_buffer("first", first, persistent=False)
        self.register_buffer("second", second, persistent=False)

    def forward(self, dense: Tensor, indices: Tensor) -> Tensor:
        """The click logit of each sample."""
        features = self.bottom(dense)
        bags = [bag(index) for bag, index in zip(self.embeddings, indices, strict=True)]
        vectors = torch.stack([features, *bags], dim=1)
        dots = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.first, self.second]
        return self.click(self.top(torch.cat([features, dots], dim=1))).squeeze(1)


def build(setting: Setting) -> Workload:
    """Eight tables of a million rows, 64 wide, a hundred look-ups a sample; tiny: a thousand rows, four look-ups."""
    if setting.tiny:
        model = Dlrm(dense=16, tables=8, rows=1000, width=16, bottom=[32, 32], top=[64, 64, 64])
        rows, lookups, dense_features = 1000, 4, 16
    else:
        model = Dlrm(dense=512, tables=8, rows=1_000_000, width=64, bottom=[512, 512], top=[1024, 1024, 1024])
        rows, lookups, dense_features = 1_000_000, 100, 512
    model = model.to(setting.device, setting.dtype)
    dense = torch.randn(setting.batch_size, dense_features, device=setting.device, dtype=setting.dtype)
    indices = torch.randint(rows, (8, setting.batch_size, lookups), device=setting.device)
    if not setting.training:
        model.eval()
        return Workload(inference_step(setting, lambda: model(dense, indices)), setting.batch_size, (model,))
    clicks = torch.randint(2, (setting.batch_size,), device=setting.device).to(setting.dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    step = training_step(
        setting, optimizer, lambda: functional.binary_cross_entropy_with_logits(model(dense, indices), clicks)
    )
    return Workload(step, setting.batch_size, (model,))
