"""Model-agnostic meta-learning (arXiv 1703.03400) on Omniglot-sized images, in the three forms of the suite.

`adaptation` fine-tunes to one new task after the other; `sequential` learns through the fine-tuning of each task in a
Python loop; `batched` does so for all tasks at once under `vmap`.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, grad_and_value, vmap
from torch.nn import functional

from torchdiag.errors import TorchdiagError
from torchdiag.models.stepping import gradientless_step, training_step
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


class Learner(nn.Module):
    """A network with the way it is fine-tuned; a module, so that compilers see all of it."""

    def __init__(self, network: nn.Module, steps: int, rate: float) -> None:
        super().__init__()
        self.network, self.steps, self.rate = network, steps, rate

    def query_loss(
        self, weights: Weights, support: Tensor, support_labels: Tensor, query: Tensor, query_labels: Tensor
    ) -> Tensor:
        """The loss on a task's queries, by weights fine-tuned to its support, a scalar."""
        adapted = _adapted(self.network, weights, support, support_labels, self.steps, self.rate)
        return functional.cross_entropy(functional_call(self.network, adapted, (query,)), query_labels)


class InTurn(Learner):
    """Tasks one after the other."""

    def forward(self, tasks: Tasks) -> Tensor:
        """The mean loss over the tasks, a scalar."""
        weights: Weights = dict(self.network.named_parameters())
        return torch.stack([self.query_loss(weights, *tasks.task(which)) for which in range(len(tasks))]).mean()


class AtOnce(Learner):
    """All tasks at once, under `vmap`.

    Each task's gradient is taken inside it: the derivative of a batched batch norm's derivative is wrong when it is
    taken outside (functorch's issue 534).
    """

    def forward(self, tasks: Tasks) -> tuple[Weights, Tensor]:
        """The mean gradient over the tasks, and the mean loss."""
        weights = {name: weight.detach() for name, weight in self.network.named_parameters()}
        learn = vmap(grad_and_value(self.query_loss), in_dims=(None, 0, 0, 0, 0))
        slopes, losses = learn(weights, tasks.support, tasks.support_labels, tasks.query, tasks.query_labels)
        return {name: slopes[name].mean(dim=0) for name in weights}, losses.mean()

    def judge(self, tasks: Tasks) -> Tensor:
        """The mean loss alone."""
        weights = {name: weight.detach() for name, weight in self.network.named_parameters()}
        loss = vmap(self.query_loss, in_dims=(None, 0, 0, 0, 0))
        return loss(weights, tasks.support, tasks.support_labels, tasks.query, tasks.query_labels).mean()


def _sizes(setting: Setting) -> tuple[int, int]:
    """Steps of fine-tuning, and channels."""
    return (2, 8) if setting.tiny else (5, 64)


def sequential(setting: Setting) -> Workload:
    """A batch of tasks of five shots, one after the other, five steps each; tiny: two steps, narrow."""
    steps, width = _sizes(setting)
    model = InTurn(pooled_network(width), steps, 0.1).to(setting.device, setting.dtype)
    tasks = _random_tasks(setting, setting.batch_size, shots=5)
    if not setting.training:
        return Workload(gradientless_step(setting, lambda: model(tasks)), setting.batch_size, (model,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return Workload(training_step(setting, optimizer, lambda: model(tasks)), setting.batch_size, (model,))


def batched(setting: Setting) -> Workload:
    """One batch of 32 tasks of five shots, all at once, five steps each; tiny: two tasks and steps, narrow."""
    if setting.autocast:
        raise TorchdiagError(
            "functorch_maml_omniglot mixes precisions where `vmap` forbids it; use --dtype bf16 or fp32."
        )
    steps, width = _sizes(setting)
    model = AtOnce(pooled_network(width), steps, 0.1).to(setting.device, setting.dtype)
    tasks = _random_tasks(setting, 2 if setting.tiny else 32, shots=5)
    if not setting.training:
        return Workload(gradientless_step(setting, lambda: model.judge(tasks)), 1, (model,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> Tensor:
        with setting.autocast_context():
            slopes, loss = model(tasks)
        for name, weight in model.network.named_parameters():
            weight.grad = slopes[name]
        optimizer.step()
        return loss

    return Workload(step, 1, (model,))


class Adapter(Learner):
    """A network that is fine-tuned to each task anew."""

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
    return Workload(gradientless_step(setting, lambda: model(batch)), 1, (model,))
