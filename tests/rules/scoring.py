"""How a diagnosis compares with the right verdict of its trace."""

from dataclasses import dataclass, field

from real_verdicts import VERDICTS, Demand, RealVerdict

from torchdiag.findings.finding import Diagnosis, Finding

WORTH = 0.02
"""The gain (share of a step) from which an exposed finding counts."""


@dataclass
class Score:
    """What came out right, what is missing, and what is wrong; one line of text each."""

    right: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    bound: str = ""
    """Empty where `bound_by` is right, else what it was and what it should be."""


def score(verdict: RealVerdict, diagnosis: Diagnosis) -> Score:
    """Compare a diagnosis with the right verdict."""
    result = Score()
    demanded: set[str] = set()
    for demand in verdict.must:
        met = [finding for finding in diagnosis.findings if meets(finding, demand)]
        demanded |= {rule for rule in demand.any if demand.at_most == "exposed"}
        told = f"{'|'.join(demand.any)} {demand.at_least}"
        (result.right if met else result.missing).append(told)
    met_exposed = {finding.rule for demand in verdict.must for finding in diagnosis.findings if meets(finding, demand)}
    for finding in diagnosis.findings:
        complaint = mistake(finding, verdict, demanded)
        if complaint:
            result.wrong.append(complaint)
        elif worth(finding) and finding.rule not in met_exposed:
            result.right.append(f"{finding.rule} (may)")
    if diagnosis.summary.bound_by not in verdict.bound_by:
        result.bound = f"{diagnosis.summary.bound_by}, not {' or '.join(verdict.bound_by)}"
    return result


def meets(finding: Finding, demand: Demand) -> bool:
    """Whether a finding is what is demanded."""
    strength = VERDICTS.index(finding.verdict)
    return (
        finding.rule in demand.any
        and VERDICTS.index(demand.at_least) <= strength <= VERDICTS.index(demand.at_most)
        and (not demand.where or f"{finding.where.file}:{finding.where.line}".endswith(demand.where))
    )


def worth(finding: Finding) -> bool:
    """Whether a finding says that time is lost now."""
    return finding.verdict == "exposed" and finding.gain_share >= WORTH


def mistake(finding: Finding, verdict: RealVerdict, demanded: set[str]) -> str:
    """What is wrong about a finding, empty for nothing."""
    told = f"{finding.rule} {finding.verdict} {100 * finding.gain_share:.1f} % ({finding.title})"
    if finding.rule in verdict.must_not and finding.verdict in ("exposed", "latent"):
        return f"refuted: {told}"
    if finding.rule in verdict.not_exposed and finding.verdict == "exposed":
        return f"no time is lost: {told}"
    if worth(finding) and finding.rule not in verdict.may | demanded:
        return f"not among what is right: {told}"
    return ""
