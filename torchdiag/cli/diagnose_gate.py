"""Which findings are worth showing, and which make a gate fail."""

from dataclasses import replace

from torchdiag.errors import TorchdiagError
from torchdiag.findings.finding import SEVERITIES, Diagnosis, Severity


def least_share(text: str | None) -> float:
    """The share (0..1) that `2%` or `0.02` means, 0 for None.

    Raises TorchdiagError for anything else.
    """
    if text is None:
        return 0.0
    number = text.strip().removesuffix("%")
    try:
        share = float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise TorchdiagError(f"a least gain of {text!r} is no share of a step; write 2% or 0.02")
    return share


def severity(text: str | None) -> Severity | None:
    """The severity of that name.

    Raises TorchdiagError for a name that is none.
    """
    for name in SEVERITIES:
        if name == text:
            return name
    if text is None:
        return None
    raise TorchdiagError(f"there is no severity {text!r}; there are {', '.join(SEVERITIES)}")


def without_small(diagnosis: Diagnosis, share: float) -> Diagnosis:
    """The diagnosis without findings that are known to win less than a share of a step."""
    kept = tuple(item for item in diagnosis.findings if item.gain is None or item.gain_share >= share)
    return replace(diagnosis, findings=kept)


def fails(diagnosis: Diagnosis, gate: Severity) -> bool:
    """Whether a finding that costs time now is at least that severe."""
    worst = SEVERITIES.index(gate)
    return any(
        finding.verdict == "exposed" and SEVERITIES.index(finding.severity) <= worst for finding in diagnosis.findings
    )
