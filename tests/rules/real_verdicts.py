"""The right verdict of real traces, written down from what each trace shows before any rule existed.

One TOML file per collection lies in `verdicts/`. Every `[[trace]]` holds

`path`
    The trace, below the folder of real traces that lies beside the project (`reference.corpus.FOLDER`).
`bound_by`
    The acceptable values of the summary's `bound_by`; more than one only where two readings of the file are both fair.
    `gpu`: kernels are what the time goes to, a faster host changes little. `host`: the device waits for operators,
    Python, launches, allocations or synchronising calls, or there is no device and the processor does the work.
    `data`: it waits for batches to be loaded or prepared. `communication`: collectives and peer copies that nothing
    covers take the most. `transfer`: copies between host and device do. `warm-up`: one-off initialisation fills the
    window, so that the steady pace cannot be told. `cannot-tell`: the file lacks what it takes (GPU work not
    recorded, events cut away).
`must`
    Findings that the evidence proves. One of `any` has to be reported, with a verdict of at least `at_least` in the
    order exposed > latent > no-gain > cannot-tell, and of at most `at_most` where that is given. `where`, if given, is
    the tail of the place (`file.py:line`, as torchdiag's labels have it) that one of these findings names.
`may`
    What else is right to report as exposed. Names may be patterns, and groups of rules (`catalogue.toml`).
`not_exposed`
    Tempting, and right at most as latent, no-gain or cannot-tell: real in the code, but no time is lost to it here.
`must_not`
    Wrong, unless as no-gain or cannot-tell: the trace refutes it, or holds no evidence that could carry it.
`healthy`
    Nothing outside `may` may come out as exposed with 2 % of the step or more.
`reason`
    The numbers that were seen.

A rule's own name in one list beats a pattern or a group in another; among patterns, `must` and `may` hold.

In every trace, an exposed finding of 2 % of the step or more that neither `must` nor `may` names counts as wrong. So
does any but a cannot-tell of `NEVER_FROM_ONE_FILE`: one file is one rank of a machine that it does not describe.
"""

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
VERDICTS = ("cannot-tell", "no-gain", "latent", "exposed")
"""From the weakest to the strongest."""
BOUNDS = ("gpu", "host", "data", "communication", "transfer", "warm-up", "cannot-tell")
NEVER_FROM_ONE_FILE = frozenset({"comm-straggler", "numa-affinity", "cpu-oversubscription"})

_NAMES = tomllib.loads((HERE / "catalogue.toml").read_text(encoding="utf-8"))
CATALOGUE: frozenset[str] = frozenset(rule for rules in _NAMES["catalogue"].values() for rule in rules)
"""The ids of the rule catalogue."""
GROUPS: dict[str, list[str]] = _NAMES["groups"]
"""Patterns of ids, by a name that starts with @."""


@dataclass(frozen=True)
class Demand:
    """A finding that has to come out: one of `any`, with a verdict between two bounds, at a place if `where` is set."""

    any: tuple[str, ...]
    at_least: str
    at_most: str
    where: str


@dataclass(frozen=True)
class RealVerdict:
    """What a diagnosis of one real trace has to say, may say, and must not."""

    path: str
    bound_by: tuple[str, ...]
    must: tuple[Demand, ...]
    may: frozenset[str]
    not_exposed: frozenset[str]
    must_not: frozenset[str]
    healthy: bool
    reason: str


def rules_of(patterns: list[str]) -> frozenset[str]:
    """The ids that patterns and groups stand for; a pattern that fits no rule of the catalogue is a `ValueError`."""
    found: set[str] = set()
    for pattern in patterns:
        if pattern.startswith("@"):
            found |= rules_of(GROUPS[pattern])
            continue
        fitting = {rule for rule in CATALOGUE if fnmatchcase(rule, pattern)}
        if not fitting:
            raise ValueError(f"no rule of the catalogue is called {pattern!r}")
        found |= fitting
    return frozenset(found)


def _demand(row: dict[str, Any]) -> Demand:
    unknown = set(row) - {"any", "at_least", "at_most", "where"}
    if unknown or not set(row["any"]) <= CATALOGUE:
        raise ValueError(f"unknown keys or rules in {row}")
    demand = Demand(tuple(row["any"]), row["at_least"], row.get("at_most", "exposed"), row.get("where", ""))
    if VERDICTS.index(demand.at_least) > VERDICTS.index(demand.at_most):
        raise ValueError(f"{demand} asks for more than it allows")
    return demand


def _refused(patterns: list[str], right: frozenset[str], named_right: set[str]) -> frozenset[str]:
    """What `patterns` refuse, less what is right; to refuse by name what is right by name is a `ValueError`."""
    contradicted = named_right & set(patterns)
    if contradicted:
        raise ValueError(f"{sorted(contradicted)} both right and wrong")
    return rules_of(patterns) - right


def _verdict(row: dict[str, Any]) -> RealVerdict:
    row = dict(row)
    must = tuple(_demand(demand) for demand in row.pop("must", []))
    may, not_exposed, must_not = (row.pop(key, []) for key in ("may", "not_exposed", "must_not"))
    named_wrong = set(not_exposed) | set(must_not)
    allowed = rules_of(may) - (named_wrong - set(may))
    demanded = {rule for demand in must for rule in demand.any}
    exposed = {rule for demand in must if demand.at_least == "exposed" for rule in demand.any}
    verdict = RealVerdict(
        path=row.pop("path"),
        bound_by=tuple(row.pop("bound_by")),
        must=must,
        may=allowed,
        not_exposed=_refused(not_exposed, allowed | exposed, set(may) | exposed),
        must_not=_refused(must_not, allowed | demanded, set(may) | demanded) | NEVER_FROM_ONE_FILE,
        healthy=row.pop("healthy", False),
        reason=row.pop("reason"),
    )
    if row:
        raise ValueError(f"{verdict.path}: unknown keys {sorted(row)}")
    return verdict


def load_verdicts() -> list[RealVerdict]:
    """All entries, file by file; a mistake in one is a `ValueError` or a `KeyError`."""
    return [
        _verdict(row)
        for file in sorted((HERE / "verdicts").glob("*.toml"))
        for row in tomllib.loads(file.read_text(encoding="utf-8"))["trace"]
    ]
