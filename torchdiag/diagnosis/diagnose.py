"""A trace's diagnosis: rules asked, gains replayed, findings judged and put in order."""

from collections.abc import Iterable

from torchdiag.diagnosis.available import available
from torchdiag.diagnosis.discovery import rules
from torchdiag.diagnosis.gains import Charge, Weighed, weigh
from torchdiag.diagnosis.summary import summary
from torchdiag.errors import TorchdiagError
from torchdiag.findings.finding import EVENTS, Diagnosis, Finding, Severity, Unchecked, Verdict
from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Confidence
from torchdiag.timeline import device_names
from torchdiag.timeline.facts.cold_start import cold_start
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

EXPOSED_SHARE = 0.01
"""A gain of this share of a step is worth a finding."""
ACCUSED_SHARE = 0.002
"""What is accused of less of a step than this costs nothing, hidden or not."""
SEVERE: tuple[tuple[float, Severity], ...] = ((0.1, "high"), (0.03, "medium"), (0.0, "low"))
LOWER: dict[Confidence, Confidence] = {"high": "medium", "medium": "low", "low": "low"}


def diagnose(facts: Facts, asked: Iterable[Rule] | None = None) -> Diagnosis:
    """The findings of the `asked` rules (all rules where None), those with the greatest expected gain first.

    Raises TorchdiagError for a trace without events.
    """
    if not (facts.trace.kind != Kind.OTHER).any():
        raise TorchdiagError(f"{facts.trace.path} holds no events: nothing can be told of it")
    met = available(facts)
    asked = tuple(rules() if asked is None else asked)
    able = [rule for rule in asked if rule.needs <= met]
    charges = [Charge(rule, suspect) for rule in able for suspect in rule.check(facts) if len(suspect.rows)]
    findings = tuple(sorted((judge(facts, weighed) for weighed in weigh(facts, charges)), key=in_order))
    devices = facts.partition.devices
    return Diagnosis(
        path=facts.trace.path,
        torch=facts.summary.torch,
        device=device_names.device_name(facts.trace, devices[0].device) if devices else "CPU",
        summary=summary(facts, findings),
        findings=findings,
        unchecked=tuple(
            Unchecked(rule.id, tuple(sorted(need.value for need in rule.needs - met)))
            for rule in asked
            if not rule.needs <= met
        ),
        quality=facts.summary.quality,
    )


def judge(facts: Facts, weighed: Weighed) -> Finding:
    """A suspect as a finding."""
    suspect, rule = weighed.charge.suspect, weighed.charge.rule
    times = facts.get(steady)
    share = weighed.gain.expected_ns / times.step_ns if weighed.gain is not None else 0.0
    verdict = _verdict(facts, weighed, share)
    confidence, doubts = _confidence(facts, weighed)
    return Finding(
        rule=rule.id,
        family=rule.family.name.lower(),
        verdict=verdict,
        severity=next(name for least, name in SEVERE if share >= least) if verdict == "exposed" else "info",
        title=suspect.title,
        where=suspect.where,
        count_per_step=len(suspect.rows) / len(times),
        events=tuple(suspect.rows[:EVENTS].tolist()),
        accused_ns=weighed.accused_ns,
        idle_ns=weighed.idle_ns,
        gain=weighed.gain,
        gain_share=share,
        group_gain_ns=weighed.group_gain_ns,
        confidence=confidence,
        reason="; ".join((suspect.reason, *doubts)),
        fix=suspect.fix,
    )


def _verdict(facts: Facts, weighed: Weighed, share: float) -> Verdict:
    told = weighed.charge.suspect.verdict
    if told is not None:
        return told
    if weighed.gain is None:
        return "cannot-tell"
    if facts.get(cold_start).cold and weighed.charge.rule.family is not Family.MEASUREMENT:
        return "cannot-tell"
    if share >= EXPOSED_SHARE:
        return "exposed"
    hidden = facts.partition.devices and weighed.accused_ns >= ACCUSED_SHARE * facts.get(steady).step_ns
    return "latent" if hidden else "no-gain"


def _confidence(facts: Facts, weighed: Weighed) -> tuple[Confidence, list[str]]:
    confidence, doubts = weighed.charge.suspect.confidence, list[str]()
    times = facts.get(steady)
    if facts.get(cold_start).cold:
        doubts.append("only warm-up was recorded")
    elif times.whole:
        doubts.append("no steps are marked: the whole recording counts as one")
    elif len(times) == 1:
        doubts.append("seen in one step only")
    if weighed.charge.rule.family in (Family.LAUNCH, Family.PAUSE) and (facts.trace.kind == Kind.PYTHON).any():
        doubts.append("recorded with stacks, which makes host time look longer than it is")
    for _ in doubts:
        confidence = LOWER[confidence]
    return confidence, doubts


def in_order(finding: Finding) -> tuple[float, ...]:
    """What findings are sorted by: those that cost time now first, the greatest gain first."""
    verdicts: tuple[Verdict, ...] = ("exposed", "latent", "cannot-tell", "no-gain")
    return (verdicts.index(finding.verdict), -finding.gain_share, -finding.accused_ns)
