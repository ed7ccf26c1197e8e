"""Rows whose times cannot be meant: no analysis looks at them, the quality notes count them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchdiag.trace.absent import MISSING

if TYPE_CHECKING:
    from torchdiag.trace.columns import Trace

Rows = NDArray[np.int64]

FAR_NS = 86_400_000_000_000
"""A day: a timestamp of 0 is believed unless the middle event of the trace is later than this, and events between which
nothing starts for longer belong to clocks that have nothing to do with one another."""

REACH_NS = 2**62
"""Times that lie further than this (146 years) from 0 could not be subtracted from one another in 64 bits."""

COMPLETE = ord("X")


def negative_durations(trace: Trace) -> Rows:
    """int64: rows of phase X that have a start and end before it."""
    return complete(trace, np.flatnonzero((trace.dur_ns < 0) & (trace.dur_ns != MISSING)))


def zero_timestamps(trace: Trace) -> Rows:
    """int64: rows of phase X at time 0 in a trace whose other events are more than a day away."""
    rows = complete(trace, np.flatnonzero(trace.ts_ns == 0))
    if not len(rows):
        return rows
    times = trace.ts_ns[(trace.phase == COMPLETE) & (trace.dur_ns != MISSING) & (trace.ts_ns != MISSING)]
    middle = len(times) // 2
    return rows if np.partition(times, middle)[middle] > FAR_NS else rows[:0]


def other_clocks(trace: Trace) -> Rows:
    """int64: rows of phase X more than a day away from where most events are, as when two runs wrote to one file."""
    if within_a_day(trace.ts_ns):
        return np.empty(0, np.int64)
    trusted = (trace.phase == COMPLETE) & (trace.dur_ns != MISSING) & (trace.ts_ns != MISSING)
    trusted[zero_timestamps(trace)] = False
    trusted[out_of_reach(trace)] = False
    rows = np.flatnonzero(trusted)
    times = trace.ts_ns[rows]
    if not len(rows) or int(times.max()) - int(times.min()) <= FAR_NS:
        return rows[:0]
    order = np.argsort(times, kind="stable")
    borders = np.flatnonzero(np.diff(times[order]) > FAR_NS) + 1
    groups = np.split(order, borders)
    largest = max(range(len(groups)), key=lambda group: len(groups[group]))
    return rows[np.concatenate([group for number, group in enumerate(groups) if number != largest] or [order[:0]])]


def within_a_day(times: Rows) -> bool:
    """Whether all times but the missing ones lie within FAR_NS of one another."""
    if not len(times):
        return True
    low, high = int(times.min()), int(times.max())
    if low == MISSING:
        low = int(times.min(initial=high, where=times != MISSING))
    return high - low <= FAR_NS


def out_of_reach(trace: Trace) -> Rows:
    """int64: rows of phase X that start or end further from 0 than REACH_NS."""
    start, length = trace.ts_ns, trace.dur_ns
    far = np.flatnonzero(start <= -REACH_NS)
    if int(start.max(initial=0)) + int(length.max(initial=0)) >= REACH_NS:
        late = np.flatnonzero((start >= REACH_NS // 2) | (length >= REACH_NS // 2))
        late = late[start[late] > -REACH_NS]
        far = np.concatenate((far, late[length[late] >= REACH_NS - start[late]]))
    return complete(trace, far)


def faulty(trace: Trace) -> Rows:
    """int64: all of these rows but the negative durations, which a look at the column tells."""
    return np.concatenate((zero_timestamps(trace), out_of_reach(trace), other_clocks(trace)))


def complete(trace: Trace, rows: Rows) -> Rows:
    """Those of the rows that are of phase X and have a start and a duration."""
    return rows[(trace.phase[rows] == COMPLETE) & (trace.dur_ns[rows] != MISSING) & (trace.ts_ns[rows] != MISSING)]
