"""What the catalogue knows about a model before anything of it is imported."""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its own signatures untyped.

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Literal

from torchdiag.errors import TorchdiagError
from torchdiag.models.workload import Mode, Setting, Size, Workload

Domain = Literal["vision", "language", "speech", "recommendation", "reinforcement learning", "other"]

_DISTRIBUTIONS = {"doctr": "python-doctr", "torch_geometric": "torch-geometric"}
"""What to install for a package, where that is called otherwise than what is imported."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One model: what it is, what it can do, its batch sizes, and where it is built.

    `builder` names a module below `torchdiag.models` and its function: `vision.yolov3:build`. `batch` gives the batch
    size at the real size of each mode the model has, and `tiny_batch` that at the tiny size; `fixed_batch` says that
    the model has no other, and whatever else is asked for is answered with it. `requires` are the packages it imports,
    by the name of the import. `a100_eval_batch` is the evaluation batch at which an A100 with 40 GB is busiest, where
    the suite's authors have tuned it. `later` marks what is not among the 84 of the paper.
    """

    name: str
    domain: Domain
    task: str
    builder: str
    batch: dict[Mode, int]
    tiny_batch: int = 2
    fixed_batch: bool = False
    requires: tuple[str, ...] = ("torch",)
    a100_eval_batch: int | None = None
    later: bool = False

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes the model has."""
        return tuple(self.batch)

    def default_batch(self, mode: Mode, size: Size) -> int:
        """The batch size of a mode at a size.

        Raises:
            TorchdiagError: the model does not have the mode.
        """
        if mode not in self.batch:
            raise TorchdiagError(f"{self.name} has no {mode} mode; it has {' and '.join(self.modes)}.")
        return self.batch[mode] if size == "real" else self.tiny_batch

    def missing_packages(self) -> list[str]:
        """What has to be installed before it runs, by the names that pip knows."""
        return [_DISTRIBUTIONS.get(package, package) for package in self.requires if find_spec(package) is None]

    def install_line(self) -> str:
        """The command that installs what is missing; empty if nothing is."""
        missing = self.missing_packages()
        return f"pip install {' '.join(missing)}" if missing else ""

    def build(self, setting: Setting) -> Workload:
        """Build the model with random weights from the seed, and its inputs.

        Raises:
            TorchdiagError: a package is missing, or the model cannot do what the setting asks.
        """
        if missing := self.missing_packages():
            raise TorchdiagError(f"{self.name} needs {', '.join(missing)}: run `{self.install_line()}`.")
        batch = self.default_batch(setting.mode, setting.size)
        import torch  # noqa: PLC0415 - naming the models must not take seconds

        torch.manual_seed(setting.seed)
        module, _, function = self.builder.partition(":")
        build: Callable[[Setting], Workload] = getattr(import_module(f"torchdiag.models.{module}"), function)
        return build(replace(setting, batch_size=batch) if self.fixed_batch else setting)
