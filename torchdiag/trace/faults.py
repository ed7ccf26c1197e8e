"""Rows whose times cannot be meant: no analysis looks at them, the quality notes count them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchdiag.trace.absent import MISSING

if TYPE_CHECKING:
    from torchdiag.trace.columns import Trace

FAR_NS = 86_400_000_000_000
"""A timestamp of 0 is believed unless the middle event of the trace is later than this."""

COMPLETE = ord("X")


def negative_durations(trace: Trace) -> NDArray[np.int64]:
    """int64: rows of phase X that have a start and end before it."""
    below = np.flatnonzero(trace.dur_ns < 0)
    keep = (trace.dur_ns[below] != MISSING) & (trace.ts_ns[below] != MISSING) & (trace.phase[below] == COMPLETE)
    return below[keep]


def zero_timestamps(trace: Trace) -> NDArray[np.int64]:
    """int64: rows of phase X at time 0 in a trace whose other events are more than a day away."""
    rows = np.flatnonzero(trace.ts_ns == 0)
    rows = rows[(trace.phase[rows] == COMPLETE) & (trace.dur_ns[rows] != MISSING)]
    if not len(rows):
        return rows
    times = trace.ts_ns[(trace.phase == COMPLETE) & (trace.dur_ns != MISSING) & (trace.ts_ns != MISSING)]
    middle = len(times) // 2
    return rows if np.partition(times, middle)[middle] > FAR_NS else rows[:0]
