"""What a rule accuses, by the line it is at: the few places that matter, and the rest as one."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import Steady, steady
from torchdiag.timeline.facts.whereabouts import Where, whereabouts

Rows = NDArray[np.int64]

PLACES = 5
"""So many places of one rule are told apart."""


@dataclass(frozen=True, eq=False)
class Place:
    """Some of the accused, by number (int64[k]): those at one line, or all those at `others` further places."""

    where: Where
    chosen: Rows
    others: int
    times: Steady

    @property
    def often(self) -> float:
        """How many there are in a step, in the whole trace where it has no steps."""
        return len(self.chosen) / len(self.times)

    @property
    def how_often(self) -> str:
        """`once a step`, `12 times a step`, `12 times in the trace`."""
        count = "once" if self.often == 1 else f"{self.often:.3g} times"
        return f"{count} in the trace" if self.times.whole else f"{count} a step"

    @property
    def at(self) -> str:
        """` at train.py:88 step`, or "" where the place is not known."""
        if self.others:
            return f" at {self.others} more place{'s' if self.others > 1 else ''}"
        return f" at {self.where.label}" if self.where.label else ""


def few_places(facts: Facts, host_rows: Rows, *, in_most: bool = True) -> Iterator[Place]:
    """The host rows of accused happenings by place, the place with the most of them first.

    `in_most`: leave out the places that (nearly) every steady step does not come by.
    """
    times = facts.get(steady)
    begun = facts.trace.ts_ns[host_rows]
    number: dict[Where, list[int]] = {}
    for index, where in enumerate(facts.get(whereabouts).of(host_rows)):
        number.setdefault(where, []).append(index)
    groups = sorted(number.items(), key=lambda group: -len(group[1]))
    groups = [group for group in groups if not in_most or times.in_most(begun[group[1]])]
    kept = groups if len(groups) <= PLACES else groups[: PLACES - 1]
    for where, chosen in kept:
        yield Place(where, np.array(chosen, np.int64), 0, times)
    rest = groups[len(kept) :]
    if rest:
        chosen = np.sort(np.array([index for _, group in rest for index in group], np.int64))
        yield Place(Where(), chosen, len(rest), times)
