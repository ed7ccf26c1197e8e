"""Steps that do one thing wrong on purpose."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from typing import cast

import torch
from torch import Tensor, nn

from torchdiag.models.stepping import inference_step
from torchdiag.models.workload import Setting, Workload


class TolistSum(nn.Module):
    """Numbers [N], indices [K] and values [K]: scales the numbers by the sum of the values that the indices name."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, numbers: Tensor, indices: Tensor, values: Tensor) -> Tensor:
        """Waits for the device once for the indices, and once more for each value."""
        total = 0
        for index in cast("list[int]", indices.tolist()):
            total += values[index].item()
        return numbers * self.weight * total


def tolist_sum(setting: Setting) -> Workload:
    """1000 indices, so 1001 waits for the device in a step; tiny: 50."""
    count = 50 if setting.tiny else 1000
    model = TolistSum().to(setting.device, setting.dtype)
    numbers = torch.randn(setting.batch_size, device=setting.device, dtype=setting.dtype)
    indices = torch.arange(count, device=setting.device)
    values = torch.ones(count, dtype=torch.int64, device=setting.device)
    step = inference_step(setting, lambda: model(numbers, indices, values))
    return Workload(step, setting.batch_size, (model,))
