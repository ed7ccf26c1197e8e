"""More computing threads than processors.

## What it finds
A run whose torch uses more threads for one operator than it may use processors.

## Why it is slow
The threads of an operator wait for one another at its end. With fewer processors than threads the last one gets its
turn milliseconds later: operators of microseconds take as long as the scheduler pleases.

## How it is detected
The run folder tells torch's threads and the usable processors; in the trace, an operator that computes on the host
takes ten times its median in one call of a hundred. Both are asked for. What fewer threads would win is not in a trace:
try it.

## When it does not matter
The opposite happens as well: `torchrun` sets one thread a process, and more would be faster. Threads of data loader
workers are processes' own. One trace alone says nothing of it.

## How to fix it
Before:

```console
OMP_NUM_THREADS=64 python train.py  # on 8 processors
```

After:

```console
OMP_NUM_THREADS=8 python train.py
```

In a program `torch.set_num_threads(8)`; in workers of a loader one thread each, which is what they are given.

## References
- transferable-samplers/transferable-samplers#12: up to ten times slower
- pytorch/pytorch#82219
- pytorch/pytorch#19213
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.operator_order import operator_order
from torchdiag.timeline.facts.steady import steady

ERRATIC = 10.0
LONG_NS = 50_000
ENOUGH = 30


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for the process."""
    environment = facts.run.result.environment if facts.run is not None else None
    if environment is None or not environment.threads or not environment.usable_cpus:
        return
    if environment.threads <= environment.usable_cpus:
        return
    rows = _erratic(facts)
    if not len(rows):
        return
    yield Suspect(
        title=f"torch computes with {environment.threads} threads on {environment.usable_cpus} processors, and "
        f"{len(rows)} calls of operators take ten times as long as others of their kind",
        rows=rows,
        fix=f"Try OMP_NUM_THREADS={environment.usable_cpus} or torch.set_num_threads({environment.usable_cpus}), and "
        "fewer, and compare the time of a step.",
        reason="the run's environment and erratic operators; a trace cannot tell what fewer threads win: measure both",
        confidence="medium",
        verdict="cannot-tell",
    )


def _erratic(facts: Facts) -> NDArray[np.int64]:
    """The slowest calls of the operators that take long and vary by a factor of ten."""
    trace = facts.trace
    tops = facts.get(steady).rows(facts, facts.get(operator_order).row)
    found: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    for code in np.flatnonzero(np.bincount(trace.name[tops], minlength=1) >= ENOUGH).tolist():
        mine = tops[trace.name[tops] == code]
        took = trace.dur_ns[mine]
        usual = float(np.median(took))
        if np.quantile(took, 0.99) >= max(ERRATIC * usual, LONG_NS):
            found.append(mine[took >= max(ERRATIC * usual, LONG_NS)])
    return np.sort(np.concatenate(found))


RULE = Rule("cpu-oversubscription", Family.PAUSE, check, frozenset({Need.RUN}))
