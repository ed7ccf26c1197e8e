"""Exceptions that were thrown and caught in the steady steps: those the trace shows, else those the run counted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import recorded
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.stacks import Stacks
from torchdiag.trace.columns import NO_TEXT
from torchdiag.trace.vocabulary import STEP_MARK, Kind

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Thrown:
    """Exceptions of one type, raised at one place, that were caught.

    `cpp`: whether C++ threw them. `raised_at` and `handled_at` as recorded (`file:line:function`, a symbol of C++), ""
    where that is not known. `operators`: the operators that threw, "" if not known. `per_step` and `step_ns`: how many
    and how long from throw to catch in a step. `rows`: the recorded slices; the steps' marks where only the run counted
    them (`counted`). `failed`: the operators that these exceptions ended, of which nothing came.
    """

    name: str
    cpp: bool
    raised_at: str
    handled_at: str
    operators: str
    per_step: float
    step_ns: float
    rows: Rows
    failed: Rows
    counted: bool


def thrown(facts: Facts) -> tuple[Thrown, ...]:
    """What was thrown and caught in most steady steps, the longest in a step first."""
    seen = [*_in_trace(facts, cpp=True), *_in_trace(facts, cpp=False)]
    for cpp in (True, False):
        if not any(item.cpp == cpp for item in seen):
            seen += _counted(facts, cpp=cpp)
    return tuple(sorted(seen, key=lambda item: -item.step_ns))


def _in_trace(facts: Facts, *, cpp: bool) -> list[Thrown]:
    trace, times = facts.trace, facts.get(steady)
    rows = times.rows(facts, recorded.rows_of(trace, "throw" if cpp else "exception"))
    raised, handled = (column.at(rows, NO_TEXT).tolist() for column in (trace.args.raised_at, trace.args.handled_at))
    groups: dict[tuple[int, int, int], list[int]] = {}
    for row, *place in zip(rows.tolist(), raised, handled, strict=True):
        groups.setdefault((int(trace.name[row]), place[0], place[1]), []).append(row)
    operators = recorded.throwing_operators(trace) if cpp and groups else {}
    found: list[Thrown] = []
    for (name, raised_at, handled_at), members in groups.items():
        chosen = np.array(members, np.int64)
        if not times.in_most(trace.ts_ns[chosen]):
            continue
        found.append(
            Thrown(
                trace.names[name],
                cpp,
                _text(facts, raised_at),
                _text(facts, handled_at),
                operators.get(trace.names[name], ""),
                len(chosen) / len(times),
                float(np.maximum(trace.dur_ns[chosen], 0).sum()) / len(times),
                chosen,
                _failed(facts, chosen) if cpp else chosen[:0],
                counted=False,
            )
        )
    return found


def _counted(facts: Facts, *, cpp: bool) -> list[Thrown]:
    result = facts.run.result.recorder if facts.run is not None else None
    times = facts.get(steady)
    marks = times.rows(facts, named(facts.trace, Kind.ANNOTATION, lambda name: name.startswith(STEP_MARK)))
    if result is None or not result.steps or not len(marks):
        return []
    if cpp:
        return [
            Thrown(
                item.type, True, item.symbol or item.library, "", "", item.count / result.steps,
                item.total_ns / result.steps, marks, marks[:0], counted=True,
            )
            for item in result.throws or ()
            if item.count >= result.steps
        ]  # fmt: skip
    own = result.exception_cost_ns or 0.0
    return [
        Thrown(
            item.type, False, item.raised_at, item.handled_at or "", "", item.count / result.steps,
            max(item.total_ns - own * item.count, 0.0) / result.steps, marks, marks[:0], counted=True,
        )
        for item in result.exceptions or ()
        if item.count >= result.steps and item.handled_at
    ]  # fmt: skip


def _failed(facts: Facts, rows: Rows) -> Rows:
    """The operators that end before what was thrown in them is caught."""
    trace = facts.trace
    thread = recorded.threads(trace)[trace.track[rows]]
    operators = np.flatnonzero(trace.kind == Kind.OPERATOR)
    around = Stacks(trace, operators).outermost(thread, trace.ts_ns[rows])
    known = around >= 0
    around, caught = around[known], (trace.ts_ns[rows] + trace.dur_ns[rows])[known]
    return np.unique(around[trace.ts_ns[around] + trace.dur_ns[around] <= caught])


def _text(facts: Facts, code: int) -> str:
    return facts.trace.texts[code] if code != NO_TEXT else ""
