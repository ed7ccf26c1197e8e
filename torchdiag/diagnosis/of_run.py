"""The diagnosis of a run: gains from its light recording, lines and stacks from its detailed one."""

from collections.abc import Iterable
from dataclasses import replace

from torchdiag.diagnosis.diagnose import LOWER, diagnose, in_order
from torchdiag.diagnosis.summary import summary
from torchdiag.errors import TorchdiagError
from torchdiag.findings.finding import Diagnosis, Finding, Gain, Summary
from torchdiag.findings.rule import Rule
from torchdiag.history.run_folder import RunFolder
from torchdiag.timeline.facts.facts import Facts
from torchdiag.trace.columns import Trace
from torchdiag.trace.load import load
from torchdiag.trace.quality import UnreadableTraceError

INFLATED = "seen in the detailed recording only, in which host time looks longer than it is"


def diagnose_run(light: Facts, folder: RunFolder, asked: Iterable[Rule] | None = None) -> Diagnosis:
    """The findings of a run whose light recording is `light`.

    What a rule finds in both recordings is told as the detailed one shows it, with the gain of the light one: the
    stacks of the detailed one make its host times longer. What needs stacks is taken from the detailed one alone, with
    less confidence. Raises TorchdiagError for a recording without events.
    """
    asked = None if asked is None else tuple(asked)
    found = diagnose(light, asked)
    detail = _detail(folder)
    if detail is None:
        return replace(found, path=str(folder.path))
    try:
        other = diagnose(Facts.of(detail, folder), asked)
    except TorchdiagError:
        return replace(found, path=str(folder.path))
    findings = merged(found, other)
    unchecked = tuple(item for item in found.unchecked if item.rule in {left.rule for left in other.unchecked})
    told = summary(light, findings)
    return replace(found, path=str(folder.path), summary=told, findings=findings, unchecked=unchecked)


def merged(light: Diagnosis, detail: Diagnosis) -> tuple[Finding, ...]:
    """The findings of both recordings, each rule's once, those with the greatest expected gain first."""
    findings: list[Finding] = []
    for rule in dict.fromkeys(finding.rule for finding in (*light.findings, *detail.findings)):
        here = [finding for finding in light.findings if finding.rule == rule]
        there = [finding for finding in detail.findings if finding.rule == rule]
        if not here:
            findings += [_doubted(finding, detail.summary, light.summary) for finding in there]
        elif not there:
            findings += here
        elif len(here) == len(there):
            findings += [_placed(finding, other) for finding, other in zip(here, there, strict=True)]
        else:
            findings += _split(here, there)
    return tuple(sorted(findings, key=in_order))


def _placed(finding: Finding, other: Finding) -> Finding:
    """A finding of the light recording in the words and at the place of the detailed one."""
    if other.where.file is None:
        return finding
    return replace(finding, title=other.title, where=other.where, fix=other.fix)


def _split(here: list[Finding], there: list[Finding]) -> list[Finding]:
    """Findings of the light recording parted by the lines of the detailed one, in proportion to the gains there."""
    if any(finding.gain is None for finding in (*here, *there)) or len(here) != 1:
        return here
    whole = here[0]
    total = sum(finding.accused_ns for finding in there)
    return [_part(whole, finding, finding.accused_ns / total if total else 1 / len(there)) for finding in there]


def _part(whole: Finding, finding: Finding, share: float) -> Finding:
    gain = whole.gain
    assert gain is not None
    return replace(
        whole,
        title=finding.title,
        where=finding.where,
        fix=finding.fix,
        count_per_step=finding.count_per_step,
        accused_ns=whole.accused_ns * share,
        idle_ns=whole.idle_ns * share,
        gain=Gain(gain.low_ns * share, gain.expected_ns * share, gain.high_ns * share),
        gain_share=whole.gain_share * share,
        confidence=LOWER[whole.confidence],
    )


def _doubted(finding: Finding, detail: Summary, light: Summary) -> Finding:
    """A finding of the detailed recording alone: its share of the step kept, its times those of a light step.

    They are not scaled up: a light step that took longer than a detailed one was disturbed, not slowed by the finding.
    """
    scale = min(light.step_ns / detail.step_ns, 1.0)
    gain = finding.gain
    return replace(
        finding,
        gain=None if gain is None else Gain(gain.low_ns * scale, gain.expected_ns * scale, gain.high_ns * scale),
        gain_share=finding.gain_share * scale * detail.step_ns / light.step_ns,
        accused_ns=finding.accused_ns * scale,
        idle_ns=finding.idle_ns * scale,
        confidence=LOWER[finding.confidence],
        reason=f"{finding.reason}; {INFLATED}",
    )


def _detail(folder: RunFolder) -> Trace | None:
    if folder.detail is None or folder.trace is None:
        return None
    try:
        return load(folder.detail)
    except UnreadableTraceError:
        return None
