"""Calls of an operator that take far longer on the host than its usual call does."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import inputs
from torchdiag.timeline.facts.nesting import named
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.step_groups import median
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SlowCalls:
    """`slow`: rows of the calls in steady steps that take `ratio` times the usual one, `usual_ns`: the median of those
    whose shapes were seen before, of all where there are none.

    `new_shape` bool: whether the shapes of each were seen here for the first time; `shapes`: how many there are.
    """

    slow: Rows
    new_shape: NDArray[np.bool_]
    usual_ns: float
    calls: int
    shapes: int


def slow_calls(facts: Facts, names: frozenset[str], ratio: float, least_ns: int) -> list[SlowCalls]:
    """For each operator among `names`: its calls that take at least `ratio` times the usual and `least_ns`."""
    trace, times = facts.trace, facts.get(steady)
    every = named(trace, Kind.OPERATOR, names.__contains__)
    every = every[np.argsort(trace.ts_ns[every], kind="stable")]
    answers: list[SlowCalls] = []
    for code in sorted(set(trace.name[every].tolist())):
        calls = every[trace.name[every] == code]
        shape = facts.get(inputs).codes(calls)
        first = np.zeros(len(calls), np.bool_)
        first[np.unique(shape, return_index=True)[1]] = True
        inside = times.of(trace.ts_ns[calls]) >= 0
        calls, shape, first = calls[inside], shape[inside], first[inside]
        if not len(calls):
            continue
        usual = median(trace.dur_ns[calls if first.all() else calls[~first]].tolist())
        slow = (trace.dur_ns[calls] >= ratio * usual) & (trace.dur_ns[calls] >= least_ns)
        answers.append(SlowCalls(calls[slow], first[slow], usual, len(calls), len(set(shape.tolist()))))
    return answers
