"""A bug, where it is, the proof, and what fixing it wins."""

from dataclasses import dataclass
from typing import Literal

from torchdiag.findings.suspect import Confidence
from torchdiag.timeline.facts.whereabouts import Where
from torchdiag.trace.quality import Quality

Verdict = Literal["exposed", "latent", "no-gain", "cannot-tell"]
Severity = Literal["high", "medium", "low", "info"]
Bound = Literal["gpu", "host", "data", "transfer", "communication", "warm-up", "cannot-tell"]

SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")


@dataclass(frozen=True, slots=True)
class Gain:
    """Nanoseconds that a fix wins in a step: least, expected and most."""

    low_ns: float
    expected_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True)
class Finding:
    """A bug at one place.

    `verdict`: "exposed" costs time now; "latent" is real but hidden behind device work now; "no-gain" is the pattern
    without its cost; "cannot-tell" needs another recording. `events` are rows of the trace, at most EVENTS of them,
    `accused_ns` is their time in a step and `idle_ns` the device idle time in a step that is this finding's alone.
    `gain` is None where none can be computed. `group_gain_ns` is what fixing all findings of the family together wins.
    """

    rule: str
    family: str
    verdict: Verdict
    severity: Severity
    title: str
    where: Where
    count_per_step: float
    events: tuple[int, ...]
    accused_ns: float
    idle_ns: float
    gain: Gain | None
    gain_share: float
    group_gain_ns: float | None
    confidence: Confidence
    reason: str
    fix: str


EVENTS = 20
"""Event rows listed with a finding."""


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A rule that could not be asked, and what to record so that it can."""

    rule: str
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What the steps are bound by, in figures of one steady step.

    `gpu_busy` is a share (0..1), None without a device. `ceiling_step_ns` is the time of a step if all that the host
    causes vanished, None where that cannot be told. `sentence` is what a tired engineer reads.
    """

    bound_by: Bound
    step_ns: float
    gpu_busy: float | None
    kernels_per_step: float
    syncs_per_step: float
    ceiling_step_ns: float | None
    steps: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings of a trace, those with the greatest expected gain first."""

    path: str
    torch: str | None
    device: str
    summary: Summary
    findings: tuple[Finding, ...]
    unchecked: tuple[Unchecked, ...]
    quality: tuple[Quality, ...]
