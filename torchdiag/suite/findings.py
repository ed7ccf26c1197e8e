"""What the diagnoses of a suite's runs have in common: which bug hits how many models, and what mending it gains."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from torchdiag.suite.outcome import Outcome
from torchdiag.suite.pairs import geometric_mean

_ALL_BUT = 0.999
"""No gain is taken to be more: what is left of a step has a logarithm."""


@dataclass(frozen=True, slots=True)
class RuleHits:
    """One rule over the suite.

    `models` (with their mode) lose time by it now, `latent` have it hidden behind other work, `undecided` are those of
    which it cannot be told. `gain` is the share of a step that mending it wins, by the geometric mean of what is left
    of the steps of `models`; `largest` that of the one that wins most.
    """

    rule: str
    title: str
    models: tuple[str, ...]
    latent: tuple[str, ...]
    undecided: tuple[str, ...]
    gain: float
    largest: float


@dataclass(slots=True)
class _Seen:
    title: str = ""
    gains: dict[str, float] = field(default_factory=dict[str, float])
    latent: set[str] = field(default_factory=set[str])
    undecided: set[str] = field(default_factory=set[str])


def top(outcomes: Iterable[Outcome]) -> list[RuleHits]:
    """The rules that found anything, the one with most models first."""
    rules: dict[str, _Seen] = {}
    for outcome in outcomes:
        name = f"{outcome.case.subject} {outcome.case.mode}".strip()
        gains: dict[str, float] = {}
        for finding in outcome.findings or ():
            seen = rules.setdefault(finding.rule, _Seen())
            seen.title = seen.title or finding.title
            if finding.verdict == "exposed":
                # Findings of one run are weighed so that their gains add up.
                gains[finding.rule] = gains.get(finding.rule, 0.0) + (finding.gain_share or 0.0)
            elif finding.verdict == "latent":
                seen.latent.add(name)
            elif finding.verdict == "cannot-tell":
                seen.undecided.add(name)
        for rule, gain in gains.items():
            rules[rule].gains[name] = max(rules[rule].gains.get(name, 0.0), min(gain, _ALL_BUT))
    found = [_hits(rule, seen) for rule, seen in rules.items() if seen.gains or seen.latent]
    return sorted(found, key=lambda item: (-len(item.models), -item.gain, item.rule))


def _hits(rule: str, seen: _Seen) -> RuleHits:
    left = geometric_mean([1 - gain for gain in seen.gains.values()])
    return RuleHits(
        rule=rule,
        title=seen.title,
        models=tuple(seen.gains),
        latent=tuple(sorted(seen.latent - set(seen.gains))),
        undecided=tuple(sorted(seen.undecided - set(seen.gains) - seen.latent)),
        gain=0.0 if left is None else 1 - left,
        largest=max(seen.gains.values(), default=0.0),
    )
