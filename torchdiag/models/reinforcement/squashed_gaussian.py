"""The policy of soft actor-critic: a Gaussian whose samples are squashed into -1..1 (arXiv 1801.01290, appendix C)."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import math

import torch
from torch import Tensor
from torch.nn import functional


def sample(mean: Tensor, log_deviation: Tensor) -> tuple[Tensor, Tensor]:
    """Actions [N, A] by the reparametrisation trick, and their log-probabilities [N, 1]."""
    noise = torch.randn_like(mean)
    raw = mean + log_deviation.exp() * noise
    log_probability = -0.5 * noise.square() - log_deviation - 0.5 * math.log(2 * math.pi)
    squash = 2 * (math.log(2) - raw - functional.softplus(-2 * raw))
    return raw.tanh(), (log_probability - squash).sum(dim=-1, keepdim=True)
