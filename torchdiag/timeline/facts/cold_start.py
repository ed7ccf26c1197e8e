"""Whether what was recorded is a program that warms up."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.first_uses import first_uses
from torchdiag.timeline.facts.steady import COLD_SHARE, extent, steady
from torchdiag.timeline.steps import submitted_ns

Rows = NDArray[np.int64]

MOSTLY = 0.5
"""A recording that spends this share of its time so is one of a warm-up, though steps may follow."""


@dataclass(frozen=True, eq=False)
class ColdStart:
    """`rows` int64: host events that happen once in a program. `share` (0..1): of the steady steps, the time in them,
    on whatever thread; `of_recording` (0..1): of all that was recorded. `cold`: whether the steady steps, too, are
    mostly warm-up, so that nothing can be told. `mostly`: whether most of a recording without marked steps is.
    """

    rows: Rows
    share: float
    of_recording: float
    cold: bool
    mostly: bool


def cold_start(facts: Facts) -> ColdStart:
    """Whether what was recorded is a program that warms up."""
    trace, times, rows = facts.trace, facts.get(steady), facts.get(first_uses)
    inside = times.rows(facts, rows)
    share = min(_covered(facts, inside, *extent(facts)) / times.total_ns, 1.0)
    start, end = extent(facts)
    in_steps = int(np.count_nonzero(times.per_step(trace.ts_ns[inside])))
    cold = times.cold or (share > COLD_SHARE and (times.whole or in_steps <= 1)) or _all_work_before(facts)
    of_recording = _covered(facts, rows, start, end) / (end - start)
    return ColdStart(rows, share, of_recording, cold, facts.steps_source != "marks" and of_recording > MOSTLY)


def _all_work_before(facts: Facts) -> bool:
    """Whether all device work was launched outside of the steady steps, so by the one that warms up."""
    activities = facts.partition.activities
    if facts.steps_source != "marks" or not len(activities):
        return False
    return not bool((facts.get(steady).of(submitted_ns(facts.trace, activities)) >= 0).any())


def _covered(facts: Facts, rows: Rows, low: int, high: int) -> int:
    """The time that the rows, by start, cover of [low, high)."""
    start = np.clip(facts.trace.ts_ns[rows], low, high)
    end = np.clip(facts.trace.ts_ns[rows] + facts.trace.dur_ns[rows], low, high)
    return intervals.length(*intervals.union(start, end))
