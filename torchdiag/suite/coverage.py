"""How much of PyTorch a suite's run exercises, against the part of it that resembles MLPerf."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from torchdiag.suite.outcome import Figures, Outcome

MLPERF_LIKE: Final = {
    "resnet50": "ResNet-50",
    "pytorch_unet": "3D U-Net",
    "detectron2_fcos_r_50_fpn": "RetinaNet",
    "vision_maskrcnn": "Mask R-CNN",
    "speech_transformer": "RNN-T",
    "hf_Bert": "BERT",
    "dlrm": "DLRM",
}
"""The models nearest to those of MLPerf Training 2.1 (November 2022) that have a reference in PyTorch: what was there
when the paper's suite was frozen. They count in training alone."""

PAPER_RATIO: Final = 2.3
"""The paper's claim: so many times the API surface of MLPerf."""


@dataclass(frozen=True, slots=True)
class Covered:
    """Distinct names that some runs exercised; `runs` is how many of them told."""

    runs: int
    operators: frozenset[str]
    functions: frozenset[str]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the whole suite covers, each domain alone, and the MLPerf-like part.

    `absent` are the models of that part of which no training run was made. `alone` is, for each model, what no other
    model of the suite exercises.
    """

    all: Covered
    domains: dict[str, Covered]
    mlperf: Covered
    absent: tuple[str, ...]
    alone: dict[str, Covered]

    @property
    def operator_ratio(self) -> float | None:
        """Operators of all over those of the MLPerf-like part; None unless all of that was trained."""
        return _ratio(self.all.operators, self.mlperf.operators) if not self.absent else None

    @property
    def function_ratio(self) -> float | None:
        """Functions of all over those of the MLPerf-like part; None unless all of that was trained."""
        return _ratio(self.all.functions, self.mlperf.functions) if not self.absent else None


def _ratio(names: frozenset[str], of: frozenset[str]) -> float | None:
    return len(names) / len(of) if of else None


def coverage(outcomes: Iterable[Outcome]) -> Coverage:
    """What the runs exercised that recorded a trace; compiled runs are left out, whose operators are fused away."""
    told = [
        (one, one.figures)
        for one in outcomes
        if one.figures is not None and one.figures.operators and one.case.options.compile is None
    ]
    domains = dict.fromkeys(one.case.domain for one, _ in told)
    subset = [(one, figures) for one, figures in told if one.case.subject in MLPERF_LIKE and one.case.mode == "train"]
    present = {one.case.subject for one, _ in subset}
    return Coverage(
        all=_covered([figures for _, figures in told]),
        domains={
            domain: _covered([figures for one, figures in told if one.case.domain == domain]) for domain in domains
        },
        mlperf=_covered([figures for _, figures in subset]),
        absent=tuple(name for name in MLPERF_LIKE if name not in present),
        alone=_alone(told),
    )


def _covered(figures: Sequence[Figures]) -> Covered:
    return Covered(
        len(figures),
        frozenset(name for one in figures for name in one.operators),
        frozenset(name for one in figures for name in one.functions or ()),
    )


def _alone(told: Sequence[tuple[Outcome, Figures]]) -> dict[str, Covered]:
    models: dict[str, list[Figures]] = {}
    for one, figures in told:
        models.setdefault(one.case.subject, []).append(figures)
    covered = {model: _covered(figures) for model, figures in models.items()}
    operators = Counter(name for one in covered.values() for name in one.operators)
    functions = Counter(name for one in covered.values() for name in one.functions)
    return {
        model: Covered(
            one.runs,
            frozenset(name for name in one.operators if operators[name] == 1),
            frozenset(name for name in one.functions if functions[name] == 1),
        )
        for model, one in covered.items()
    }
