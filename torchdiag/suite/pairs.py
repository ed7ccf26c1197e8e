"""Runs of a suite that differ in one thing alone, side by side: training and inference, eager and compiled, devices."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

from torchdiag.suite.cases import Case
from torchdiag.suite.shares import Measured


@dataclass(frozen=True, slots=True)
class Pair:
    """Two of one model that differ in one thing."""

    first: Measured
    second: Measured

    @property
    def ratio(self) -> float:
        """Step time of the second over that of the first."""
        return self.second.step_ns / self.first.step_ns


def _setting(case: Case) -> dict[str, Hashable]:
    options = case.options
    return {
        "subject": case.subject,
        "mode": case.mode,
        "device": options.device,
        "dtype": options.dtype,
        "compile": options.compile,
        "channels_last": options.channels_last,
        "size": options.size,
        "batch": options.batch_size,
    }


def train_and_eval(models: Sequence[Measured]) -> list[Pair]:
    """Training first, inference second; each with its own batch size."""
    return _pairs(models, lambda case: case.mode, {"mode", "batch"}, ("train", "eval").index)


def eager_and_compiled(models: Sequence[Measured]) -> dict[str, list[Pair]]:
    """By the mode of `torch.compile`: eager first."""
    modes = dict.fromkeys(one.case.options.compile for one in models if one.case.options.compile is not None)
    return {
        mode: _pairs(
            [one for one in models if one.case.options.compile in (None, mode)],
            lambda case: case.options.compile or "",
            {"compile"},
            lambda value: value != "",
        )
        for mode in modes
    }


def devices(models: Sequence[Measured]) -> dict[tuple[str, str], list[Pair]]:
    """By two devices, in the order in which they were measured."""
    names = list(dict.fromkeys(one.case.options.device for one in models if one.case.options.target_kind == "model"))
    found: dict[tuple[str, str], list[Pair]] = {}
    for both in combinations(names, 2):
        chosen = [one for one in models if one.case.options.device in both]
        pairs = _pairs(chosen, lambda case: case.options.device, {"device"}, both.index)
        if pairs:
            found[both] = pairs
    return found


def _pairs(
    models: Sequence[Measured],
    of: Callable[[Case], str],
    besides: set[str],
    order: Callable[[str], int],
) -> list[Pair]:
    """Pairs that agree in all of their settings but those in `besides`, ordered by what `of` says of them."""
    groups: dict[tuple[Hashable, ...], dict[str, Measured]] = {}
    for one in models:
        if one.case.options.target_kind != "model":
            continue
        key = tuple(value for name, value in _setting(one.case).items() if name not in besides)
        groups.setdefault(key, {}).setdefault(of(one.case), one)
    found = [sorted(group.items(), key=lambda item: order(item[0])) for group in groups.values() if len(group) == 2]
    return [Pair(first, second) for (_, first), (_, second) in found]


def geometric_mean(values: Sequence[float]) -> float | None:
    """None of nothing; 0 where one of them is."""
    if not values:
        return None
    if min(values) <= 0:
        return 0.0
    return math.exp(sum(map(math.log, values)) / len(values))
