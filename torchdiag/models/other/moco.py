"""Momentum contrast (arXiv 1911.05722): two ResNet-50, one learning and one following, and a queue of keys."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# torch leaves parts of its own signatures untyped.

import copy
from typing import Any, cast

import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

FEATURES, MOMENTUM, TEMPERATURE = 128, 0.999, 0.07


class Moco(nn.Module):
    """Two views of each image to the logits of "these two belong together" against a queue of other images' keys."""

    def __init__(self, encoder: nn.Module, queue: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.follower = copy.deepcopy(encoder).requires_grad_(False)
        self.queue: Tensor
        self.register_buffer("queue", functional.normalize(torch.randn(queue, FEATURES), dim=1))

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Logits [N, 1 + queue] of images [N, 3, P, P]; the first of each row is the true pair."""
        query = functional.normalize(self.encoder(queries), dim=1)
        with torch.no_grad():
            if self.training:
                self._follow()
            key = functional.normalize(self.follower(keys), dim=1)
        own = (query * key).sum(dim=1, keepdim=True)
        others = query @ self.queue.clone().to(query.dtype).T
        if self.training:
            # The oldest keys are at the front. Moved rather than counted, so that no step differs from another.
            self.queue.copy_(torch.cat([self.queue[len(key) :], key.detach().to(self.queue.dtype)])[-len(self.queue) :])
        return torch.cat([own, others], dim=1) / TEMPERATURE

    def _follow(self) -> None:
        for slow, fast in zip(self.follower.parameters(), self.encoder.parameters(), strict=True):
            slow.lerp_(fast, 1 - MOMENTUM)


def build(setting: Setting) -> Workload:
    """224x224 images against 65536 keys in one process, without shuffling between any; tiny: 64x64, 256 keys.

    Its batch norms see the whole batch: the paper's shuffling needs several GPUs.
    """
    pixels, queue = (64, 256) if setting.tiny else (224, 65_536)
    library = cast(Any, torchvision.models.resnet)
    blocks = [1, 1, 1, 1] if setting.tiny else [3, 4, 6, 3]
    encoder: nn.Module = library.ResNet(library.Bottleneck, blocks, num_classes=FEATURES)
    model = Moco(encoder, queue).to(setting.device, setting.dtype).train(setting.training)
    shape = (setting.batch_size, 3, pixels, pixels)
    queries, keys = (torch.randn(shape, device=setting.device, dtype=setting.dtype) for _ in range(2))
    if not setting.training:
        return Workload(inference_step(setting, lambda: model(queries, keys)), setting.batch_size, (model,))
    true_pairs = torch.zeros(setting.batch_size, dtype=torch.int64, device=setting.device)
    optimizer = torch.optim.SGD(model.encoder.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    step = training_step(setting, optimizer, lambda: functional.cross_entropy(model(queries, keys), true_pairs))
    return Workload(step, setting.batch_size, (model,))
