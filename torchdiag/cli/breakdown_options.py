"""The options of `torchdiag breakdown` on their way to the analysis."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """What to break down, as `torchdiag.breakdown` takes it."""

    steps: str | None
    window: str | None
    device: int | None
    top: int
