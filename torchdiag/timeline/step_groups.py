"""Which steps look alike, and what sets the others apart.

Steps differ by design (the first, logging, evaluation, a checkpoint); an average over all of them describes none.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from torchdiag.timeline.result import Step

COUNTS = ("kernels", "launches", "syncs", "copies")
SAME_COUNT_SHARE = 0.02
"""Counts that differ by no more than this share (rounded down) are the same."""

SAME_TIME_RATIO = 1.5
"""Steps alike in counts whose times differ by more than this factor are not alike."""

PARTIAL_SHARE = 0.8
"""A first or last step with fewer kernels and less time than this share of the usual one was cut by the trace."""

TOLD_TIME_RATIO = 1.1
"""A step that is odd for its counts is also told to be longer or shorter beyond this factor."""


class _Usual(NamedTuple):
    """The usual steps: how many, their median time and their median counts, in the order of COUNTS."""

    number: int
    length_ns: float
    counts: list[float]


def grouped(steps: list[Step]) -> tuple[Step, ...]:
    """The steps with `group` and `note` filled in: `a` is the largest group, the others follow in order of time."""
    if not steps:
        return ()
    groups = [by_time for alike in _by_counts(steps) for by_time in _by_time(steps, alike)]
    # Of equally large groups the later one is usual: a trace tends to begin with warm-up.
    groups.sort(key=lambda members: (-len(members), -members[-1]))
    usual = _usual([steps[i] for i in groups[0]])
    others = sorted(groups[1:])
    noted = list(steps)
    for number, members in enumerate([groups[0], *others]):
        for i in members:
            note = _note(steps, i, usual, odd=number > 0)
            noted[i] = replace(steps[i], group=_letters(number), note=note)
    return tuple(noted)


def _by_counts(steps: list[Step]) -> list[list[int]]:
    """Indices of steps with the same counts; the commonest counts come first and gather what is near them."""
    exact: dict[tuple[int, ...], list[int]] = {}
    for index, step in enumerate(steps):
        exact.setdefault(_counts(step), []).append(index)
    centres = np.zeros((len(exact), len(COUNTS)), np.int64)
    gathered: list[list[int]] = []
    for counts, members in sorted(exact.items(), key=lambda item: -len(item[1])):
        known = centres[: len(gathered)]
        near = (np.abs(known - counts) <= known * SAME_COUNT_SHARE).all(axis=1)
        if near.any():
            gathered[int(near.argmax())] += members
        else:
            centres[len(gathered)] = counts
            gathered.append(members)
    return [sorted(members) for members in gathered]


def _by_time(steps: list[Step], members: list[int]) -> list[list[int]]:
    groups: list[list[int]] = []
    while members:
        usual = sorted(_length(steps[i]) for i in members)[(len(members) - 1) // 2]
        alike = [usual <= _length(steps[i]) * SAME_TIME_RATIO <= usual * SAME_TIME_RATIO**2 for i in members]
        groups.append([i for i, near in zip(members, alike, strict=True) if near])
        members = [i for i, near in zip(members, alike, strict=True) if not near]
    return groups


def _usual(members: list[Step]) -> _Usual:
    counts = [median(column) for column in zip(*map(_counts, members), strict=True)]
    return _Usual(len(members), median(map(_length, members)), counts)


def median(values: Iterable[float]) -> float:
    """The middle one of the values (at least one), the mean of the middle two. `statistics` takes long to import."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _note(steps: list[Step], index: int, usual: _Usual, *, odd: bool) -> str:
    parts: list[str] = []
    if _is_partial(steps, index, usual):
        parts.append("partial")
    elif odd and index == 0:
        parts.append("first")
    if odd:
        parts += _differences(steps[index], usual)
    return ", ".join(parts)


def _is_partial(steps: list[Step], index: int, usual: _Usual) -> bool:
    """Whether the first or last step is only a part of one, judged by the usual steps."""
    step = steps[index]
    return (
        index in (0, len(steps) - 1)
        and usual.number > 1
        and step.kernels < PARTIAL_SHARE * usual.counts[0]
        and _length(step) < PARTIAL_SHARE * usual.length_ns
    )


def _differences(step: Step, usual: _Usual) -> list[str]:
    parts: list[str] = []
    length = _length(step)
    if length > TOLD_TIME_RATIO * usual.length_ns > 0:
        parts.append(f"{length / usual.length_ns:.1f}x longer")
    elif usual.length_ns > TOLD_TIME_RATIO * length > 0:
        parts.append(f"{usual.length_ns / length:.1f}x shorter")
    for name, count, other in zip(COUNTS, _counts(step), usual.counts, strict=True):
        difference = count - round(other)
        if abs(difference) > int(other * SAME_COUNT_SHARE):
            parts.append(f"{difference:+d} {name if abs(difference) != 1 else _singular(name)}")
    return parts


def _counts(step: Step) -> tuple[int, ...]:
    return step.kernels, step.launches, step.syncs, step.copies


def _length(step: Step) -> int:
    return step.end_ns - step.start_ns


def _singular(name: str) -> str:
    return {"copies": "copy", "launches": "launch"}.get(name, name.removesuffix("s"))


def _letters(number: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    letters = ""
    while number >= 0:
        letters, number = chr(ord("a") + number % 26) + letters, number // 26 - 1
    return letters
