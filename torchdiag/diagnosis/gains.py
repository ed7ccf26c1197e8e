"""What fixing each suspect wins, by replaying the steps without it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from torchdiag.diagnosis.accused import Accused, accused
from torchdiag.diagnosis.ownership import Ownership
from torchdiag.findings.finding import Gain
from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.idle import idle_by_device
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.replay import Replay


@dataclass(frozen=True, slots=True, eq=False)
class Charge:
    """A rule's suspect, before its gain is known."""

    rule: Rule
    suspect: Suspect


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """A suspect with its gain. All times are nanoseconds a steady step.

    `accused_ns` is the time it is accused of, on host threads and devices; `idle_ns` the idle time that is its own;
    `group_gain_ns` what fixing all suspects of its family together wins, None where it is the only one.
    """

    charge: Charge
    gain: Gain | None
    accused_ns: float
    idle_ns: float
    group_gain_ns: float | None


def replay(facts: Facts) -> Replay:
    """The steps of a trace, ready to be replayed."""
    return Replay.of(facts.trace, facts.partition, facts.steps)


def measured_paces_ns(facts: Facts) -> NDArray[np.int64]:
    """int64[n]: the paces of all steps with nothing changed, which every gain is measured from."""
    return facts.get(replay).paces_ns([])


def saved_ns(facts: Facts, changes: Sequence[Change]) -> float:
    """Nanoseconds that a steady step gets shorter by some changes, at least 0."""
    chosen = facts.get(steady).number
    saved = facts.get(measured_paces_ns)[chosen] - facts.get(replay).paces_ns(changes)[chosen]
    return max(float(saved.sum()) / len(chosen), 0.0)


def weigh(facts: Facts, charges: Iterable[Charge]) -> list[Weighed]:
    """The gain of every suspect, in the order in which families may claim.

    Families are taken away one after the other in that order, so that the expected gains add up to no more than all of
    them win together; within a family the common gain is split. The least is the smaller, the most the greater of that
    and of what each wins alone, and none exceeds what `bound_ns` says.
    """
    weighed: list[Weighed] = []
    gone: list[Change] = []
    saved_before = 0.0
    owners = Ownership(facts)
    by_family = sorted(charges, key=lambda charge: charge.rule.family)
    for family, members in groupby(by_family, key=lambda charge: charge.rule.family):
        tried = [(charge, _alone(facts, charge.suspect)) for charge in members]
        tried.sort(key=lambda item: -item[1])
        changes = [charge.suspect.change for charge, _ in tried if charge.suspect.change is not None]
        if family is not Family.MEASUREMENT and changes:
            gone += changes
            saved = saved_ns(facts, gone)
            group, saved_before = max(saved - saved_before, 0.0), max(saved, saved_before)
        else:
            group = 0.0
        for (charge, alone), share in zip(tried, _shares(facts, tried), strict=True):
            common = group if len(changes) > 1 else None
            weighed.append(_weighed(facts, charge, alone, group * share, common, owners))
    return weighed


def bound_ns(facts: Facts, time: Accused) -> float:
    """What a fix cannot exceed in a step: the device time it takes away, and of the host time it takes away no more
    than a device idles. Without devices, the host time itself."""
    steps, idle_ns = len(facts.get(steady)), facts.get(idle_by_device)
    return (min(time.host_ns, max(idle_ns, default=time.host_ns)) + time.device_ns) / steps


def _alone(facts: Facts, suspect: Suspect) -> float:
    return saved_ns(facts, [suspect.change]) if suspect.change is not None else 0.0


def _shares(facts: Facts, tried: list[tuple[Charge, float]]) -> list[float]:
    """How the members of a family, the greatest gain first, share what all of them win.

    Where they win less together than one by one, they win the same time: it goes to those first that win most of it
    alone. Else each has a share by what it wins alone, or by the time it is accused of where none wins anything alone.
    """
    changes = [charge.suspect.change for charge, _ in tried if charge.suspect.change is not None]
    weights = np.array([alone for _, alone in tried])
    together = saved_ns(facts, changes) if len(changes) > 1 else math.inf
    if weights.sum() > together:
        weights = np.diff(np.minimum(np.cumsum(weights), together), prepend=0.0)
    elif not weights.any():
        times = [charge.suspect.change for charge, _ in tried]
        found = [accused(facts, change) if change is not None else Accused(0, 0) for change in times]
        weights = np.array([time.host_ns + time.device_ns for time in found])
    total = float(weights.sum())
    return [float(weight) / total if total else 0.0 for weight in weights]


def _weighed(
    facts: Facts, charge: Charge, alone: float, expected: float, common: float | None, owners: Ownership
) -> Weighed:
    suspect, steps = charge.suspect, len(facts.get(steady))
    if suspect.change is None:
        return Weighed(charge, None, 0.0, 0.0, None)
    time = accused(facts, suspect.change)
    bound = bound_ns(facts, time)
    low, high = min(alone, expected), max(alone, expected)
    if suspect.cautious is not None:
        low = min(low, saved_ns(facts, [suspect.cautious]))
    if suspect.hopeful is not None:
        high = max(high, saved_ns(facts, [suspect.hopeful]))
        bound = max(bound, bound_ns(facts, accused(facts, suspect.hopeful)))
    return Weighed(
        charge,
        Gain(min(low, bound), min(expected, bound), min(high, bound)),
        accused_ns=(time.host_ns + time.device_ns) / steps,
        idle_ns=owners.claim(suspect.change) / steps,
        group_gain_ns=common,
    )
