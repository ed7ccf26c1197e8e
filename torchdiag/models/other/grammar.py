"""A neural probabilistic context-free grammar (arXiv 1906.10225), learned from sentences without their trees.

A step computes the likelihood of each sentence under all trees by the inside algorithm, a whole diagonal of the chart
at a time.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import torch
from torch import Tensor, nn

from torchdiag.models.stepping import training_step
from torchdiag.models.workload import Setting, Workload


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())

    def forward(self, vectors: Tensor) -> Tensor:
        return vectors + self.body(vectors)


def _scorer(width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, width), _Residual(width), _Residual(width), nn.Linear(width, outputs))


class NeuralGrammar(nn.Module):
    """Sentences [N, L] to their log-likelihoods [N], under rules that networks make of one vector a symbol."""

    def __init__(self, words: int, spans: int, classes: int, width: int) -> None:
        super().__init__()
        self.spans, self.classes = spans, classes
        self.start = nn.Parameter(torch.randn(width) * width**-0.5)
        self.span = nn.Parameter(torch.randn(spans, width) * width**-0.5)
        self.word_class = nn.Parameter(torch.randn(classes, width) * width**-0.5)
        self.starts = _scorer(width, spans)
        self.splits = nn.Linear(width, (spans + classes) ** 2)
        self.words = _scorer(width, words)

    def forward(self, sentences: Tensor) -> Tensor:
        """The log-likelihood of each sentence, the sum over all of its trees."""
        starts = self.starts(self.start).float().log_softmax(dim=-1)
        rules = self.splits(self.span).float().softmax(dim=-1)
        emissions = self.words(self.word_class).float().log_softmax(dim=-1)
        return inside(emissions.T[sentences], rules, starts)


def inside(leaves: Tensor, rules: Tensor, starts: Tensor) -> Tensor:
    """The inside algorithm in log space [N].

    `leaves` [N, L, T] are log-probabilities of each word under each class, `rules` [A, (A + T)^2] probabilities of a
    span's two halves, `starts` [A] log-probabilities of what spans the sentence. A half of one word is of a class, a
    longer one is a span.
    """
    count, length, classes = leaves.shape
    spans, symbols = len(rules), len(rules[0])
    # chart[width - 1][:, start] holds the scores of all symbols over that stretch; those that cannot be are -1e9.
    impossible = leaves.new_full((count, length, spans), -1e9)
    chart = [torch.cat([impossible, leaves], dim=-1)]
    for width in range(2, length + 1):
        places = length - width + 1
        left = torch.stack([chart[first - 1][:, :places] for first in range(1, width)], dim=2)
        right = torch.stack([chart[width - first - 1][:, first : first + places] for first in range(1, width)], dim=2)
        left_most, right_most = left.amax(dim=(2, 3), keepdim=True), right.amax(dim=(2, 3), keepdim=True)
        halves = (left - left_most).exp().transpose(2, 3) @ (right - right_most).exp()
        scores = halves.reshape(count, places, symbols) @ rules.T
        scores = scores.clamp(min=1e-30).log() + (left_most + right_most).squeeze(-1)
        chart.append(torch.cat([scores, leaves.new_full((count, places, classes), -1e9)], dim=-1))
    return (chart[-1][:, 0, :spans] + starts).logsumexp(dim=-1)


def build(setting: Setting) -> Workload:
    """Sentences of 20 words of 5000, 30 spans and 30 classes, width 256; tiny: 8 words of 100, 5 and 5, width 32."""
    words, length, symbols, width = (100, 8, 5, 32) if setting.tiny else (5000, 20, 30, 256)
    model = NeuralGrammar(words, symbols, symbols, width).to(setting.device, setting.dtype)
    sentences = torch.randint(words, (setting.batch_size, length), device=setting.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.75, 0.999))
    step = training_step(setting, optimizer, lambda: -model(sentences).mean())
    return Workload(step, setting.batch_size, (model,))
