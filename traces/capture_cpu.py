"""Captures `cpu_training_torch_2_14.json.gz`: three training steps of a small network on the CPU, recorded by PyTorch.

    python capture_cpu.py            (needs torch; run it in the folder that the file shall be written to)

It is the one trace here that a profiler wrote, so what it holds is known by construction only as far as this script
says: three marked steps, two convolutions a step, eight pictures made in the loader a step, no GPU.
"""

import gzip
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

OUTPUT = Path("cpu_training_torch_2_14.json.gz")
STEPS_BEFORE_RECORDING = 2
RECORDED_STEPS = 3


class Digits(Dataset[tuple[torch.Tensor, int]]):
    """Random pictures that take some work to make."""

    def __len__(self) -> int:
        """As many as the recorded and the unrecorded steps take."""
        return 8 * (STEPS_BEFORE_RECORDING + RECORDED_STEPS)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """One picture, float32[1, 28, 28], and its label."""
        picture = torch.randn(1, 28, 28)
        return (picture - picture.mean()) / picture.std(), index % 10


class Network(nn.Module):
    """Two convolutions and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 16, 3, padding=1)
        self.head = nn.Linear(16 * 7 * 7, 10)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Logits, float32[batch, 10], of pictures, float32[batch, 1, 28, 28]."""
        hidden = nn.functional.max_pool2d(nn.functional.relu(self.first(pictures)), 2)
        hidden = nn.functional.max_pool2d(nn.functional.relu(self.second(hidden)), 2)
        return self.head(hidden.flatten(1))


def train_step(model: Network, optimizer: torch.optim.Optimizer, pictures: torch.Tensor, labels: torch.Tensor) -> float:
    """One step; the loss as a number."""
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(pictures), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def main() -> None:
    """Train under the profiler and write the trace."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    text = OUTPUT.with_suffix("")
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=STEPS_BEFORE_RECORDING - 1, warmup=1, active=RECORDED_STEPS, repeat=1),
        on_trace_ready=lambda recorded: recorded.export_chrome_trace(str(text)),
        record_shapes=True,
        with_stack=True,
    ) as profiler:
        for pictures, labels in DataLoader(Digits(), batch_size=8):
            train_step(model, optimizer, pictures, labels)
            profiler.step()
    OUTPUT.write_bytes(gzip.compress(text.read_bytes(), 9, mtime=0))
    text.unlink()


if __name__ == "__main__":
    main()
