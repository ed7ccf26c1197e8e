"""Python's garbage collector stops the thread that feeds the device.

## What it finds
Automatic collections inside steps, and `gc.collect()` called in every step.

## Why it is slow
A collection of the oldest generation visits every object of the program: tens of milliseconds with a million objects,
seconds with some ten million. It comes at any allocation, at other times on every rank; the others then wait as well.

## How it is detected
Collections that the profiler records (`record_python_gc_info`) or that torchdiag records beside it, together 0.5 % of
the steady steps or more, or one of 5 ms or more. Collections come every so many steps by nature: the gain is their time
replayed away, as a mean over the steady steps that were recorded.

## When it does not matter
A trace without such records shows a collection as a hole like any other: nothing is said of it. Collecting by hand
every so many steps, on all ranks at once, is the cure and not the illness.

## How to fix it
Before:

```python
for batch in loader:
    step(batch)
```

After:

```python
gc.collect()
gc.freeze()
gc.disable()
for number, batch in enumerate(loader):
    step(batch)
    if number % 500 == 0:
        gc.collect(1)  # the same steps on every rank
```

Memory of the host grows where objects refer to one another in circles: watch it.

## References
- pytorch/torchtitan#148: collections at the same step of all ranks won 1.5 % on 512 GPUs
- sgl-project/sglang#28067: 75 million objects, 41 s a collection
- PrimeIntellect-ai/prime-rl#2145
- facebookresearch/dinov3#150: what it costs in memory
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.collections_of_garbage import collections_of_garbage
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind

LEAST_SHARE = 0.005
LONG_NS = 5_000_000


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for automatic collections, one for those that the program asks for in every step."""
    found, trace, times = facts.get(collections_of_garbage), facts.trace, facts.get(steady)
    for asked_for in (False, True):
        rows = found.row[found.asked_for == asked_for]
        if not len(rows):
            continue
        total, longest = int(trace.dur_ns[rows].sum()), int(trace.dur_ns[rows].max())
        if total < LEAST_SHARE * times.total_ns and longest < LONG_NS:
            continue
        if asked_for and (times.whole or not times.in_most(trace.ts_ns[rows])):
            continue
        frames = rows[trace.kind[rows] == Kind.PYTHON]
        where = facts.get(whereabouts).most(frames)
        at = f" at {where.label}" if asked_for and where.file else ""
        stricken = int(np.count_nonzero(times.per_step(trace.ts_ns[rows])))
        count = f"{len(rows)} garbage collection{'s' if len(rows) > 1 else ''}"
        share = f"in {stricken} of {len(times)} steps" if not times.whole else "in the trace"
        yield Suspect(
            title=f"{count} {share}{at} stop Python for up to {time_text(longest)}, "
            f"{time_text(total / len(times))} a step",
            rows=rows,
            where=where if asked_for else type(where)(),
            change=Change(shortened=rows),
            fix=f"Drop gc.collect(){at}, or call it every few hundred steps."
            if asked_for
            else "After warm-up: gc.collect(), gc.freeze(), gc.disable(); then gc.collect(1) every few hundred steps, "
            "at the same step on all ranks.",
            reason="collections that were recorded as such; they come every so many steps, the mean is over "
            f"{len(times)}",
            confidence="high" if asked_for or stricken > 1 else "medium",
        )


RULE = Rule("python-gc-pause", Family.PAUSE, check)
