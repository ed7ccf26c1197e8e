"""How the diagnosis of a simulated script compares with the truth, which the same script without its bug shows."""

from dataclasses import dataclass
from pathlib import Path

from simulator.simulated_program import Pair, Program, Simulated, simulate

import torchdiag
from torchdiag.findings.finding import Diagnosis, Finding

TOLD = ("exposed", "latent")


@dataclass(frozen=True)
class Judged:
    """What was said of a slow script, and of its fixed version.

    `top` is the rule with the greatest expected gain among those that cost time now, "" for none. `predicted_ns` is the
    step's time less what the rule's findings win, `true_ns` that of the fixed script. `lingering` are the findings that
    the rule still has there.
    """

    rule: str
    top: str
    predicted_ns: float
    true_ns: float
    lingering: tuple[Finding, ...]
    slow: Diagnosis

    @property
    def error(self) -> float:
        """How far the prediction is from the truth, as a share of the truth; negative where it promises too much."""
        return self.predicted_ns / self.true_ns - 1


def diagnosed(program: Program, folder: Path, *rules: str) -> tuple[Diagnosis, Simulated]:
    """The diagnosis of a program's trace by some rules (all without any), and the truth."""
    truth, path = simulate(program), folder / "trace.json"
    truth.write(path)
    return torchdiag.diagnose(path, rules=rules), truth


def judged(pair: Pair, folder: Path) -> Judged:
    """Simulate and diagnose both scripts of a pair."""
    slow, _ = diagnosed(pair.slow, folder)
    fixed, truth = diagnosed(pair.fixed, folder, pair.rule)
    exposed = [finding for finding in slow.findings if finding.verdict == "exposed"]
    return Judged(
        rule=pair.rule,
        top=max(exposed, key=expected_ns).rule if exposed else "",
        predicted_ns=slow.summary.step_ns - sum(expected_ns(one) for one in exposed if one.rule == pair.rule),
        true_ns=truth.steady_ns,
        lingering=tuple(finding for finding in fixed.findings if finding.verdict in TOLD),
        slow=slow,
    )


def expected_ns(finding: Finding) -> float:
    """What a finding is expected to win in a step, 0 where nothing can be computed."""
    return finding.gain.expected_ns if finding.gain else 0.0
