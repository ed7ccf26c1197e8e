"""Model-agnostic meta-learning (arXiv 1703.03400) on Omniglot-sized images, in the three forms of the suite.

`adaptation` fine-tunes to one new task after the other; `sequential` learns through the fine-tuning of each task in a
Python loop; `batched` does so for all tasks at once under `vmap`.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from torchdiag.models.stepping import training_step
from torchdiag.models.workload import Setting, Workload

WAYS, QUERIES, PIXELS = 5, 15, 28
Weights = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Tasks:
    """Images [T, M, 1, 28, 28] and labels [T, M] of T tasks, to adapt to and to be judged by."""

    support: Tensor
    support_labels: Tensor
    query: Tensor
    query_labels: Tensor

    def task(self, which: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """One of them."""
        return self.support[which], self.support_labels[which], self.query[which], self.query_labels[which]

    def __len__(self) -> int:
        return len(self.support)


def _norm(width: int) -> nn.BatchNorm2d:
    # Every batch is normalized by its own statistics, as in the paper: there is nothing to carry between tasks.
    return nn.BatchNorm2d(width, track_running_stats=False)


def strided_network(width: int) -> nn.Sequential:
    """Images [M, 1, 28, 28] to logits [M, 5]: convolutions of stride 2, 2 and 2, and one that leaves one pixel."""
    layers: list[nn.Module] = []
    for before in (1, width, width):
        layers += [nn.Conv2d(before, width, 3, stride=2), nn.ReLU(), _norm(width)]
    layers += [nn.Conv2d(width, width, 2), nn.ReLU(), _norm(width)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, WAYS))


def pooled_network(width: int) -> nn.Sequential:
    """Images [M, 1, 28, 28] to logits [M, 5]: three convolutions, each halved by pooling."""
    layers: list[nn.Module] = []
    for before in (1, width, width):
        layers += [nn.Conv2d(before, width, 3), _norm(width), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, WAYS))


def _random_tasks(setting: Setting, count: int, shots: int) -> Tasks:
    def images(number: int) -> Tensor:
        return torch.randn(count, number, 1, PIXELS, PIXELS, device=setting.device, dtype=setting.dtype)

    def labels(number: int) -> Tensor:
        return (torch.arange(number, device=setting.device) % WAYS).repeat(count, 1)

    support, query = WAYS * shots, WAYS * QUERIES
    return Tasks(images(support), labels(support), images(query), labels(query))


def _adapted(model: nn.Module, weights: Weights, images: Tensor, labels: Tensor, steps: int, rate: float) -> Weights:
    """The weights after some steps of gradient descent on one task, differentiable by the weights before."""

    def loss(now: Weights) -> Tensor:
        return functional.cross_entropy(functional_call(model, now, (images,)), labels)

    for _ in range(steps):
        slopes = grad(loss)(weights)
        weights = {name: weight - rate * slopes[name] for name, weight in weights.items()}
    return weights


class MetaLearner(nn.Module):
    """A network with the way it is fine-tuned; a module, so that compilers see all of it."""

    def __init__(self, network: nn.Module, steps: int, rate: float, at_once: bool) -> None:
        super().__init__()
        self.network, self.steps, self.rate, self.at_once = network, steps, rate, at_once

    def forward(self, tasks: Tasks) -> Tensor:
        """The mean loss on the queries after fine-tuning to each task, a scalar."""
        weights: Weights = dict(self.network.named_parameters())

        def loss(support: Tensor, support_labels: Tensor, query: Tensor, query_labels: Tensor) -> Tensor:
            adapted = _adapted(self.network, weights, support, support_labels, self.steps, self.rate)
            return functional.cross_entropy(functional_call(self.network, adapted, (query,)), query_labels)

        if self.at_once:
            return vmap(loss)(tasks.support, tasks.support_labels, tasks.query, tasks.query_labels).mean()
        return torch.stack([loss(*tasks.task(which)) for which in range(len(tasks))]).mean()


def _meta_learner(setting: Setting, batch_size: int, tasks: int, at_once: bool) -> Workload:
    steps, width = (2, 8) if setting.tiny else (5, 64)
    model = MetaLearner(pooled_network(width), steps, 0.1, at_once).to(setting.device, setting.dtype)
    batch = _random_tasks(setting, tasks, shots=5)
    if not setting.training:

        def judge() -> Tensor:
            with torch.no_grad(), setting.autocast_context():
                return model(batch)

        return Workload(judge, batch_size, (model,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return Workload(training_step(setting, optimizer, lambda: model(batch)), batch_size, (model,))


def sequential(setting: Setting) -> Workload:
    """A batch of tasks of five shots, one after the other, five steps each; tiny: two steps, narrow."""
    return _meta_learner(setting, setting.batch_size, setting.batch_size, at_once=False)


def batched(setting: Setting) -> Workload:
    """One batch of 32 tasks of five shots, all at once, five steps each; tiny: two tasks and steps, narrow."""
    return _meta_learner(setting, 1, 2 if setting.tiny else 32, at_once=True)


class Adapter(nn.Module):
    """A network that is fine-tuned to each task anew."""

    def __init__(self, network: nn.Module, steps: int, rate: float) -> None:
        super().__init__()
        self.network, self.steps, self.rate = network, steps, rate

    def forward(self, tasks: Tasks) -> Tensor:
        """The logits of all queries [T, M, 5]."""
        weights = {name: weight.detach() for name, weight in self.network.named_parameters()}
        answers = list[Tensor]()
        for which in range(len(tasks)):
            support, support_labels, query, _ = tasks.task(which)
            adapted = _adapted(self.network, weights, support, support_labels, self.steps, self.rate)
            answers.append(functional_call(self.network, adapted, (query,)))
        return torch.stack(answers)


def adaptation(setting: Setting) -> Workload:
    """Adapt to 32 tasks of one shot in turn, ten steps each, and classify their queries; tiny: two tasks, two steps."""
    tasks, steps, width = (2, 2, 8) if setting.tiny else (32, 10, 64)
    model = Adapter(strided_network(width), steps, 0.4).to(setting.device, setting.dtype)
    batch = _random_tasks(setting, tasks, shots=1)

    def step() -> Tensor:
        with torch.no_grad(), setting.autocast_context():
            return model(batch)

    return Workload(step, 1, (model,))
