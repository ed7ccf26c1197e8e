"""The lines of a program that wait for the device in every step, for one reason."""

from collections import Counter
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.blocking import Blocking
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.wait_reasons import Reason, WaitReasons, wait_reasons
from torchdiag.timeline.facts.whereabouts import Where, whereabouts
from torchdiag.trace.vocabulary import STEP_MARK, Kind

Rows = NDArray[np.int64]

LINES = 5
"""So many lines of one reason are told apart, the rest are told of together."""
SEVERAL = 2
"""Without known steps, what happens once may be the beginning or the end of the program."""


@dataclass(frozen=True, eq=False)
class WaitingLine:
    """A line that waits in (nearly) every step, or all of `others` further ones.

    `found` are its waits, `often` how many there are ("2 times a step"), `at` says where (" at train.py:88 step", ""),
    by the annotation that it is in (`within`, "" for none) where no line is known. `operator` is the outermost operator
    that waits, "" without one.
    """

    where: Where
    found: WaitReasons
    others: int
    steps: int
    whole: bool
    operator: str
    within: str

    @property
    def waits(self) -> Blocking:
        """Its waits."""
        return self.found.waits

    @property
    def per_step(self) -> float:
        """How many waits there are in a step."""
        return len(self.found) / self.steps

    @property
    def often(self) -> str:
        """`once a step`, `2.5 times a step`, `40 times in this trace`."""
        if self.whole:
            return f"{len(self.found)} times in this trace"
        return "once a step" if len(self.found) == self.steps else f"{self.per_step:.3g} times a step"

    @property
    def at(self) -> str:
        """` at train.py:88 step`, ` at 3 more lines`, or "" where the line is not known."""
        if self.others:
            return f" at {self.others} more place{'s' if self.others > 1 else ''}"
        if self.where.file and self.where.line is not None:
            return f" at {self.where.label}"
        return f" in `{self.within}`" if self.within else ""


def waiting_lines(facts: Facts, reason: Reason) -> list[WaitingLine]:
    """The lines that wait for one reason in (nearly) every step, those that wait longest first."""
    found = facts.get(wait_reasons).of(reason)
    times = facts.get(steady)
    groups: dict[tuple[str | int | None, ...], list[int]] = {}
    places = facts.get(whereabouts).of(found.waits.row)
    annotations = _annotations(facts, found.waits.row)
    for index, where in enumerate(places):
        line = (where.file, where.line) if where.file else (where.module, annotations[index] or where.operator)
        groups.setdefault((*line, where.function), []).append(index)
    lines: list[Rows] = []
    for members in groups.values():
        chosen = np.array(members, np.int64)
        several = not times.whole or len(chosen) >= SEVERAL
        if several and times.in_most(facts.trace.ts_ns[found.waits.row[chosen]]):
            lines.append(chosen)
    lines.sort(key=lambda chosen: -int(found.waits.waited_ns[chosen].sum()))
    kept = lines if len(lines) <= LINES else lines[: LINES - 1]
    told = [_line(facts, found.part(chosen), _common([places[index] for index in chosen])) for chosen in kept]
    if len(kept) < len(lines):
        rest = np.sort(np.concatenate(lines[len(kept) :]))
        told.append(_line(facts, found.part(rest), Where(), len(lines) - len(kept)))
    return told


def _line(facts: Facts, found: WaitReasons, where: Where, others: int = 0) -> WaitingLine:
    times = facts.get(steady)
    operator = _most([facts.trace.names[code] for code in facts.trace.name[found.top[found.top >= 0]].tolist()])
    within = "" if where.file or others else _most(_annotations(facts, found.waits.row))
    return WaitingLine(where, found, others, len(times), times.whole, operator, within)


def _most(names: list[str]) -> str:
    return Counter(names).most_common(1)[0][0] if names else ""


def _annotations(facts: Facts, rows: Rows) -> list[str]:
    """The innermost annotation around each row that marks no step, "" for none."""
    trace, tree = facts.trace, facts.get(nesting)
    marks = tree.mask(named(trace, Kind.ANNOTATION, lambda name: not name.startswith(STEP_MARK)))
    found = tree.nearest(rows, marks)
    return [trace.names[code] if row >= 0 else "" for row, code in zip(found, trace.name[found].tolist(), strict=True)]


def _common(places: list[Where]) -> Where:
    """What places of one line have in common."""
    values = [{getattr(where, column.name) for where in places} for column in fields(Where)]
    return Where(*(value.pop() if len(value) == 1 else None for value in values))
