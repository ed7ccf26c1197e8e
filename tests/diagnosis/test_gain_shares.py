"""How bugs that win the same time, or other time, share what fixing all of them wins."""

import numpy as np
import pytest
from reference.reader import trace_of
from written import call, kernel, mark, operator, parsed

from torchdiag.diagnosis.gains import Charge, weigh
from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts

MS = 1_000_000
STEP = 10 * MS


def host_bound() -> Facts:
    """Three steps: 4 ms of one operator, 3 ms of another, a launch, and a kernel of 1 ms."""
    events = []
    for number in range(3):
        at = number * STEP
        events += [mark(number, at, STEP), operator(at + MS, 4 * MS, "slow"), operator(at + 5 * MS, 3 * MS, "slower")]
        events += [call(at + 8 * MS, MS // 10, number + 1), kernel(at + 8 * MS + MS // 2, MS, number + 1)]
    return Facts.of(trace_of(parsed(events), {}))


def gains_ms(*accused: tuple[str, float], families: tuple[Family, ...] = ()) -> list[float]:
    """Expected gains of suspects that leave a share of an operator's time, in the order asked for."""
    facts = host_bound()
    names = [facts.trace.names[code] for code in facts.trace.name]
    charges = []
    for number, (name, left) in enumerate(accused):
        rows = np.flatnonzero([other == name for other in names])
        family = families[number] if families else Family.LAUNCH
        suspect = Suspect("", rows, "", "", change=Change(shortened=rows, host_scale=left))
        charges.append(Charge(Rule(str(number), family, lambda _: ()), suspect))
    found = {item.charge.rule.id: item.gain for item in weigh(facts, charges)}
    return [found[str(number)].expected_ns / MS for number in range(len(accused))]


def test_what_is_won_at_different_times_is_won_by_each():
    assert gains_ms(("slow", 0.0), ("slower", 0.0)) == pytest.approx([4, 3])


def test_the_same_time_goes_to_what_wins_most_of_it():
    assert gains_ms(("slow", 0.5), ("slow", 0.25)) == pytest.approx([0, 3])


def test_an_earlier_family_has_what_it_wins_and_a_later_one_what_it_adds():
    families = (Family.LAUNCH, Family.PAUSE)
    assert gains_ms(("slow", 0.0), ("slow", 0.5), families=families) == pytest.approx([2, 2])
