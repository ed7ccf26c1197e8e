"""Which models there are, without importing any of them."""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its own signatures untyped.

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from torchdiag.errors import TorchdiagError
from torchdiag.models.workload import Mode, Setting, Size, Workload


@dataclass(frozen=True, slots=True)
class Entry:
    """One model: where its `build(setting)` is (file and function), what it can do, and its batch sizes.

    `batch` gives the real batch size of each mode the model has; `tiny_batch` is that of the tiny size.
    """

    name: str
    domain: str
    task: str
    builder: str
    batch: dict[Mode, int]
    tiny_batch: int = 2
    requires: tuple[str, ...] = ("torch",)

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
        """The packages it needs that are not installed."""
        return [package for package in self.requires if find_spec(package) is None]

    def build(self, setting: Setting) -> Workload:
        """Build the model with random weights from the seed, and its inputs.

        Raises:
            TorchdiagError: a package is missing, or the model cannot do what the setting asks.
        """
        if missing := self.missing_packages():
            packages = " ".join(missing)
            raise TorchdiagError(f"{self.name} needs {', '.join(missing)}: run `pip install {packages}`.")
        self.default_batch(setting.mode, setting.size)
        import torch  # noqa: PLC0415 - naming the models must not take seconds

        torch.manual_seed(setting.seed)
        module, _, function = self.builder.partition(":")
        build: Callable[[Setting], Workload] = getattr(import_module(f"torchdiag.models.{module}"), function)
        return build(setting)


_VISION = ("torchvision",)
_LANGUAGE = ("transformers",)
_ENTRIES = (
    Entry("resnet18", "vision", "classification", "classification:resnet18", {"train": 16, "eval": 8}, 2, _VISION),
    Entry(
        "resnet50",
        "vision",
        "classification",
        "classification:resnet50",
        {"train": 32, "eval": 32},
        2,
        _VISION,
    ),
    Entry("vgg16", "vision", "classification", "classification:vgg16", {"train": 64, "eval": 4}, 2, _VISION),
    Entry(
        "resnet50_quantized_qat",
        "vision",
        "classification",
        "quantized:resnet50",
        {"train": 32, "eval": 32},
        2,
        _VISION,
    ),
    Entry("yolov3", "vision", "detection", "yolov3:build", {"train": 16, "eval": 8}),
    Entry(
        "fasterrcnn_resnet50_fpn",
        "vision",
        "detection",
        "detection:fasterrcnn",
        {"train": 4, "eval": 4},
        1,
        _VISION,
    ),
    Entry("dcgan", "vision", "generation", "dcgan:build", {"train": 32, "eval": 256}, 4),
    Entry("hf_Bert", "language", "language modeling", "language:bert", {"train": 4, "eval": 1}, 2, _LANGUAGE),
    Entry("hf_GPT2", "language", "language modeling", "language:gpt2", {"train": 4, "eval": 1}, 2, _LANGUAGE),
    Entry("hf_T5", "language", "language modeling", "language:t5", {"train": 8, "eval": 1}, 2, _LANGUAGE),
    Entry("dlrm", "recommendation", "ranking", "dlrm:build", {"train": 2048, "eval": 2048}, 64),
    Entry(
        "soft_actor_critic",
        "reinforcement learning",
        "control",
        "soft_actor_critic:build",
        {"train": 256, "eval": 256},
        32,
    ),
)

MODELS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def find(name: str) -> Entry:
    """The entry of that name; letter case does not matter.

    Raises:
        TorchdiagError: no model is called so; the message names the nearest.
    """
    by_lower = {known.lower(): known for known in MODELS}
    if name.lower() in by_lower:
        return MODELS[by_lower[name.lower()]]
    near = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(by_lower[match] for match in near)}?" if near else ""
    raise TorchdiagError(f"There is no model called {name!r}.{hint} `torchdiag profile --list` names them all.")
