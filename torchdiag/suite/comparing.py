"""Two runs of a suite against each other: what became slower or faster, what counts differ, what broke.

Times are compared by their raw samples and never by a single median (`permutation`); what can be counted exactly is
compared exactly.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from torchdiag.suite import permutation
from torchdiag.suite.folder import SuiteFolder
from torchdiag.suite.outcome import COUNTERS, Outcome
from torchdiag.suite.permutation import Shift

SIGNIFICANCE: Final = 0.05
MIN_EFFECT: Final = 0.03
"""A change of less than that share is none, however sure it is."""

PEAK: Final = "gpu_peak_allocated_bytes"


class Verdict(StrEnum):
    """What is said of the time of one group."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "no change"
    UNSURE = "cannot tell"
    BROKE = "broke"
    MENDED = "mended"
    OTHER = "not comparable"


@dataclass(frozen=True, slots=True)
class CountChange:
    """A count that differs: smallest and largest over all steps and processes of each side."""

    name: str
    a: tuple[int, int]
    b: tuple[int, int]

    @property
    def worse(self) -> bool:
        """Whether B has more."""
        return self.b > self.a


@dataclass(frozen=True, slots=True)
class Change:
    """One model in one setting, in A and in B. `processes` are those measured of each; `note` says why, if need be."""

    group: str
    verdict: Verdict
    processes: tuple[int, int]
    shift: Shift | None = None
    counts: tuple[CountChange, ...] = ()
    interleaved: bool = True
    note: str = ""

    @property
    def regressed(self) -> bool:
        """Whether B is worse in anything."""
        return self.verdict in (Verdict.SLOWER, Verdict.BROKE) or any(change.worse for change in self.counts)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All groups that both have, those that one of them lacks, and what else differs between the two."""

    changes: tuple[Change, ...]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    differences: tuple[str, ...]

    @property
    def regressions(self) -> list[Change]:
        """What is worse in B."""
        return [change for change in self.changes if change.regressed]


def compare(a: SuiteFolder, b: SuiteFolder, *, min_effect: float = MIN_EFFECT) -> Comparison:
    """Compare what is done of two runs of suites; `min_effect` is a share."""
    of_a, of_b = _groups(a.outcomes()), _groups(b.outcomes())
    both = [group for group in of_a if group in of_b]
    return Comparison(
        changes=tuple(_change(group, of_a[group], of_b[group], min_effect) for group in both),
        only_in_a=tuple(group for group in of_a if group not in of_b),
        only_in_b=tuple(group for group in of_b if group not in of_a),
        differences=tuple(_differences([of_a[group] for group in both], [of_b[group] for group in both])),
    )


def _groups(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.status not in ("skipped", "interrupted"):
            groups.setdefault(outcome.case.group, []).append(outcome)
    return groups


def _change(group: str, a: Sequence[Outcome], b: Sequence[Outcome], min_effect: float) -> Change:
    fine_a, fine_b = _fine(a), _fine(b)
    processes = (len(fine_a), len(fine_b))
    if len(fine_b) < len(b) and len(fine_a) == len(a):
        worst = next(outcome for outcome in b if outcome not in fine_b)
        return Change(group, Verdict.BROKE, processes, note=worst.message)
    if not fine_a and fine_b:
        return Change(group, Verdict.MENDED, processes, note=a[0].message)
    if not fine_a or not fine_b:
        return Change(group, Verdict.OTHER, processes, note="it failed in both")
    if told := _unlike(fine_a, fine_b):
        return Change(group, Verdict.OTHER, processes, note=told)
    shift = permutation.compare(_samples(fine_a), _samples(fine_b))
    counts = tuple(_counts(fine_a, fine_b))
    return Change(group, _verdict(shift, min_effect), processes, shift, counts, _interleaved(fine_a, fine_b))


def _fine(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.status == "complete" and outcome.measured]


def _unlike(a: Sequence[Outcome], b: Sequence[Outcome]) -> str:
    """Why these did not do the same work; empty if they did."""
    for name in ("batch_size", "size", "parameters"):
        of_a, of_b = ({getattr(one.figures, name) for one in side} for side in (a, b))
        if of_a != of_b:
            shown = " against ".join("/".join(sorted(map(str, side))) for side in (of_a, of_b))
            return f"{name.replace('_', ' ')} {shown}"
    return ""


def _samples(outcomes: Sequence[Outcome]) -> list[tuple[int, ...]]:
    return [outcome.figures.samples_ns for outcome in outcomes if outcome.figures is not None]


def _verdict(shift: Shift, min_effect: float) -> Verdict:
    if shift.least_p > SIGNIFICANCE:
        return Verdict.UNSURE
    if shift.p > SIGNIFICANCE:
        return Verdict.SAME
    if shift.ratio >= 1 + min_effect:
        return Verdict.SLOWER
    return Verdict.FASTER if shift.ratio <= 1 / (1 + min_effect) else Verdict.SAME


def _counts(a: Sequence[Outcome], b: Sequence[Outcome]) -> Iterable[CountChange]:
    """What differs for certain: counts that vary from step to step do where their ranges do not touch."""
    for name in (*COUNTERS, PEAK):
        of_a, of_b = _range(a, name), _range(b, name)
        if of_a is not None and of_b is not None and (of_a[1] < of_b[0] or of_b[1] < of_a[0]):
            yield CountChange(name, of_a, of_b)


def _range(outcomes: Sequence[Outcome], name: str) -> tuple[int, int] | None:
    values: list[int] = []
    for outcome in outcomes:
        figures = outcome.figures
        if figures is None:
            continue
        if name == PEAK:
            values += [] if figures.gpu_peak_allocated_bytes is None else [figures.gpu_peak_allocated_bytes]
        else:
            values += getattr(figures.counters, name)
    return (min(values), max(values)) if values else None


def _interleaved(a: Sequence[Outcome], b: Sequence[Outcome]) -> bool:
    """Whether the processes of the two took turns, so that no drift of the machine is on one side alone."""
    turns = [side for _, side in sorted([(one.began, "a") for one in a] + [(one.began, "b") for one in b])]
    changes = sum(before != after for before, after in pairwise(turns))
    return changes >= min(len(a), len(b))


def _differences(a: Sequence[Sequence[Outcome]], b: Sequence[Sequence[Outcome]]) -> Iterable[str]:
    for name, words in (("device_name", "device"), ("torch", "torch")):
        of_a, of_b = (
            sorted({getattr(one.figures, name) for group in side for one in group if one.figures is not None})
            for side in (a, b)
        )
        if of_a != of_b:
            yield f"{words}: {', '.join(of_a)} in A, {', '.join(of_b)} in B"
