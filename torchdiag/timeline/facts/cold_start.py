"""Whether what was recorded is a program that warms up."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import extent, steady
from torchdiag.timeline.step_groups import median
from torchdiag.timeline.steps import submitted_ns
from torchdiag.trace import classify
from torchdiag.trace.vocabulary import Call, Kind

Rows = NDArray[np.int64]

ONCE = re.compile(
    r"ModuleLoad|LibraryLoad|^cuModuleGetFunction|^Lazy Function Loading|^cublasCreate|^cudnnCreate|PrimaryCtxRetain"
    r"|^entire_frame_compile|^_compile\.compile_inner|^backend_compile|compile_fx|cudaFuncGetAttributes|hipModuleLoad"
)
"""What a program does once: loading kernels, creating handles, compiling."""
COLD_SHARE = 0.15
"""A step that spends this share of its time on what happens once is a warm-up."""
MOSTLY = 0.5
"""A recording that spends this share of its time so is one of a warm-up, though steps may follow."""
FIRST_USE_NS, FIRST_USE_RATIO = 1_000_000, 50
"""A call that launches, allocates or sets up for at least so long, and so many times the median of its name, is a first
use."""


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
    trace, times = facts.trace, facts.get(steady)
    host = np.flatnonzero(np.isin(trace.kind, (Kind.RUNTIME, Kind.OVERHEAD, Kind.OPERATOR, Kind.ANNOTATION)))
    once = host[classify.by_name(trace, host, lambda name: ONCE.search(name) is not None) != 0]
    rows = np.union1d(once, _first_uses(facts))
    rows = rows[np.argsort(trace.ts_ns[rows], kind="stable")]
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


def _first_uses(facts: Facts) -> Rows:
    """Rows of calls that take far longer than others of their name while every device is idle: what they set up stays.

    Steps that are marked show what comes again; of them only what happens in one step alone is a first use.
    """
    trace, times = facts.trace, facts.get(steady)
    calls = np.flatnonzero(
        np.isin(trace.call, (Call.LAUNCH, Call.ALLOCATION, Call.OTHER)) & (trace.dur_ns >= FIRST_USE_NS)
    )
    first: list[int] = []
    for code in sorted(set(trace.name[calls].tolist())):
        alike = np.flatnonzero((trace.name == code) & (trace.call != Call.NONE))
        mine = calls[trace.name[calls] == code]
        usual = median(trace.dur_ns[alike].tolist())
        long = mine[(trace.dur_ns[mine] >= FIRST_USE_RATIO * usual) | (len(alike) <= 2)]
        again = not times.whole and int(np.count_nonzero(times.per_step(trace.ts_ns[long]))) > 1
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
