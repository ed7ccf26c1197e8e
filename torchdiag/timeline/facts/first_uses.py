"""What a program does once: loading kernels, creating handles, compiling."""

import re

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.step_groups import median
from torchdiag.trace import classify
from torchdiag.trace.vocabulary import Call, Kind

Rows = NDArray[np.int64]

ONCE = re.compile(
    r"ModuleLoad|LibraryLoad|^cuModuleGetFunction|^Lazy Function Loading|^cublasCreate|^cudnnCreate|PrimaryCtxRetain"
    r"|^entire_frame_compile|^_compile\.compile_inner|^backend_compile|compile_fx|cudaFuncGetAttributes|hipModuleLoad"
)
"""What a program does once: loading kernels, creating handles, compiling."""
FIRST_USE_NS, FIRST_USE_RATIO = 1_000_000, 50
"""A call that launches, allocates or sets up for at least so long, and so many times the median of its name, is a first
use."""


def first_uses(facts: Facts) -> Rows:
    """Rows of host events that happen once in a program, by start."""
    trace = facts.trace
    host = np.flatnonzero(np.isin(trace.kind, (Kind.RUNTIME, Kind.OVERHEAD, Kind.OPERATOR, Kind.ANNOTATION)))
    once = host[classify.by_name(trace, host, lambda name: ONCE.search(name) is not None) != 0]
    rows = np.union1d(once, _long_calls(facts))
    return rows[np.argsort(trace.ts_ns[rows], kind="stable")]


def _long_calls(facts: Facts) -> Rows:
    """Rows of calls that take far longer than others of their name while every device is idle: what they set up stays.

    Steps show what comes again: after the first of them only what happens in one step alone is a first use.
    """
    trace, steps = facts.trace, facts.steps[1:]
    begins = np.array([step.start_ns for step in steps], np.int64)
    ends = np.array([step.end_ns for step in steps], np.int64)
    calls = np.flatnonzero(
        np.isin(trace.call, (Call.LAUNCH, Call.ALLOCATION, Call.OTHER)) & (trace.dur_ns >= FIRST_USE_NS)
    )
    first: list[int] = []
    for code in sorted(set(trace.name[calls].tolist())):
        alike = np.flatnonzero((trace.name == code) & (trace.call != Call.NONE))
        mine = calls[trace.name[calls] == code]
        usual = median(trace.dur_ns[alike].tolist())
        long = mine[(trace.dur_ns[mine] >= FIRST_USE_RATIO * usual) | (len(alike) <= 2)]
        place = np.searchsorted(begins, trace.ts_ns[long], side="right") - 1
        inside = place[(place >= 0) & (trace.ts_ns[long] < np.append(ends, 0)[place])]
        again = len(set(inside.tolist())) > 1
        first += [] if again else [row for row in long.tolist() if _idle_during(facts, row)]
    return np.array(first, np.int64)


def _idle_during(facts: Facts, row: int) -> bool:
    """Whether the devices do next to nothing during a call: else it may wait for them, as for room in a full queue."""
    low = int(facts.trace.ts_ns[row])
    high = low + int(facts.trace.dur_ns[row])
    for device in facts.partition.devices:
        activities = device.activities
        first, last = np.searchsorted(activities.start_ns, [low - FIRST_USE_NS, high])
        start = np.clip(activities.start_ns[first:last], low, high)
        end = np.clip(activities.end_ns[first:last], low, high)
        if intervals.length(*intervals.union(start, end)) > 0.1 * (high - low):
            return False
    return True
