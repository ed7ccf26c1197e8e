"""The time that a change takes away, before anything is replayed: the bounds of its gain."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.changes import Change
from torchdiag.timeline.distinct import among
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.replay_lines import Stretches
from torchdiag.timeline.shortened import shortened, stretches_of

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Accused:
    """Nanoseconds in steady steps that a change takes from host threads and from devices."""

    host_ns: float
    device_ns: float


def accused(facts: Facts, change: Change) -> Accused:
    """The time a change takes away. What is accused twice, or inside something accused, counts once."""
    times = facts.get(steady)
    waiting, shorter = stretches_of(facts.trace, change.unblocked), shortened(facts.trace, change)
    waited = sum(intervals.length(*spans) for _, spans in host_spans(facts, waiting))
    covered = sum(intervals.length(*spans) for _, spans in host_spans(facts, Stretches.join(waiting, shorter)))
    activities = facts.partition.activities
    removed, scaled = (among(activities.row, times.rows(facts, rows)) for rows in (change.removed, change.scaled))
    length = activities.end_ns - activities.start_ns
    device = float(length[removed].sum()) + (1 - change.device_scale) * float(length[scaled & ~removed].sum())
    return Accused(waited + (covered - waited) * (1 - change.host_scale), device)


def host_spans(facts: Facts, stretches: Stretches) -> list[tuple[int, tuple[Times, Times]]]:
    """For each thread that has some of the stretches: its track, and their union, clipped to the steady steps."""
    times = facts.get(steady)
    low, high = int(times.start_ns[0]), int(times.end_ns[-1])
    spans: list[tuple[int, tuple[Times, Times]]] = []
    for number in np.flatnonzero(np.bincount(stretches.track, minlength=1)).tolist():
        mine = stretches.track == number
        start = np.clip(stretches.start_ns[mine], low, high)
        end = np.clip(stretches.end_ns[mine], low, high)
        order = np.argsort(start, kind="stable")
        spans.append((number, intervals.union(start[order], end[order])))
    return spans
