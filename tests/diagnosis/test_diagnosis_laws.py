"""What holds of every diagnosis, whatever the trace: bounds, order, idle time owned once."""

import math

import strategies
from hypothesis import given, settings
from reference.reader import trace_of
from written import Event, parsed

from torchdiag.diagnosis.diagnose import diagnose
from torchdiag.diagnosis.discovery import rules
from torchdiag.diagnosis.gains import Charge, saved_ns, weigh
from torchdiag.errors import TorchdiagError
from torchdiag.findings.finding import Diagnosis
from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.blocking import blocking
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.idle import idle
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.nesting import named
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

ROUNDING_NS = 1.0


def facts_of(events: list[Event]) -> Facts:
    return Facts.of(trace_of(parsed(events), {}))


def everything_accused(facts: Facts) -> list[Charge]:
    """Suspects that accuse all there is, several of them the same: waits, operators, frames, kernels."""
    trace, times = facts.trace, facts.get(steady)
    operators = times.rows(facts, named(trace, Kind.OPERATOR, lambda _: True))
    frames = times.rows(facts, named(trace, Kind.PYTHON, lambda _: True))
    device = facts.get(kernels).row
    changes = {
        Family.DATA: Change(shortened=frames),
        Family.SYNC: Change(unblocked=facts.get(blocking).calls),
        Family.PAUSE: Change(shortened=operators, host_scale=0.5),
        Family.LAUNCH: Change(shortened=operators, removed=device[::2]),
        Family.KERNEL: Change(scaled=device, device_scale=0.5),
    }
    return [
        Charge(Rule(f"{family.name}-{number}", family, lambda _: ()), Suspect("", operators, "", "", change=change))
        for family, change in changes.items()
        for number in range(2)
    ]


@settings(max_examples=60, deadline=None)
@given(strategies.traces())
def test_gains_keep_their_bounds_and_idle_time_has_one_owner(events: list[Event]) -> None:
    facts = facts_of(events)
    weighed = weigh(facts, everything_accused(facts))
    steps = len(facts.get(steady))
    idle_ns = facts.get(idle).total_ns() / steps
    assert sum(item.idle_ns for item in weighed) <= idle_ns + ROUNDING_NS
    together = saved_ns(facts, [item.charge.suspect.change for item in weighed if item.charge.suspect.change])
    gains = [item.gain for item in weighed if item.gain is not None]
    assert sum(gain.expected_ns for gain in gains) <= together + ROUNDING_NS * len(gains)
    for item in weighed:
        assert item.gain is not None
        assert 0 <= item.gain.low_ns <= item.gain.expected_ns <= item.gain.high_ns
        assert item.gain.high_ns <= item.accused_ns + ROUNDING_NS


@settings(max_examples=60, deadline=None)
@given(strategies.traces())
def test_no_rule_fails_on_any_trace_and_findings_are_in_order(events: list[Event]) -> None:
    try:
        found = diagnose(facts_of(events))
    except TorchdiagError:
        return
    check(found)


def check(found: Diagnosis) -> None:
    exposed = [finding for finding in found.findings if finding.verdict == "exposed"]
    assert list(found.findings[: len(exposed)]) == exposed
    shares = [finding.gain_share for finding in exposed]
    assert shares == sorted(shares, reverse=True)
    assert {item.rule for item in found.unchecked} <= {rule.id for rule in rules()}
    for finding in found.findings:
        assert finding.title and finding.fix and finding.reason
        assert finding.events
        assert math.isfinite(finding.gain_share)
        assert finding.verdict != "exposed" or finding.gain is not None
        assert (finding.severity == "info") == (finding.verdict != "exposed")
