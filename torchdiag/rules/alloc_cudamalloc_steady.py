"""Device memory is still asked of the driver in steady steps.

## What it finds
Calls such as `cudaMalloc` (or `cuMemCreate` and `cuMemMap` with expandable segments) in every step, long after the
caching allocator should hold all that a step needs.

## Why it is slow
Such a call takes the host from 0.1 to several milliseconds, and may wait for the device. PyTorch keeps freed blocks
for reuse just so that a steady step needs none.

## How it is detected
Calls that take device memory in most steady steps, the later ones as well as the earlier ones, and not because a
cache was emptied or an allocation was tried again (other rules). Steps that capture a CUDA graph are left out. Where
each step takes and gives back memory many times, the caching allocator is off, and the title says so. The gain is the
step replayed without these calls.

## When it does not matter
In the first steps the allocator grows, and a batch longer than any before makes it grow once more: calls that stop
are no finding. Steps that were found by repetition alone may be the layers of a first pass: there, and with fewer
than three steady steps, nothing is said unless memory is given back as well.

## How to fix it
Before:

```python
for batch in loader:  # sequences a little longer each time
    loss = model(batch).sum()
```

After:

```python
model(longest_batch).sum().backward()  # once, so that the blocks are there
for batch in loader:  # lengths padded to a few sizes
    loss = model(batch).sum()
```

Or start with `PYTORCH_ALLOC_CONF=expandable_segments:True`, which lets blocks grow.

## References
- sgl-project/SpecForge#739
- pytorch/pytorch#96995
- meta-pytorch/torchrec#4375
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.allocations import Allocations, Reason, allocations
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

LEAST_STEPS = 3
"""With fewer steady steps the allocator may still be growing."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all memory that is taken in every step."""
    calls = facts.get(allocations)
    uncached = calls.of(Reason.UNCACHED)
    if len(uncached.row):
        yield _uncached(facts, uncached)
        return
    needed = calls.of(Reason.NEEDED)
    if not _steady(facts, needed):
        return
    taken = np.sort(needed.row[~needed.gives])
    often = len(taken) / len(facts.get(steady))
    where = facts.get(whereabouts).most(taken)
    at = f", mostly at {where.label}" if where.label else ""
    more = "" if needed.expandable(facts.trace) else ", or set PYTORCH_ALLOC_CONF=expandable_segments:True"
    yield Suspect(
        title=f"The allocator asks the driver for device memory {often:.3g} times a step{at}",
        rows=taken,
        where=where,
        change=Change(shortened=taken),
        fix=f"Run the largest batch once before the loop, or pad what varies to a few sizes{more}.",
        reason="calls for device memory in nearly every steady step, as many in the later ones as in the earlier ones",
    )


def _steady(facts: Facts, needed: Allocations) -> bool:
    """Whether memory goes on being taken, rather than until the allocator has enough."""
    times, taken = facts.get(steady), facts.trace.ts_ns[needed.row[~needed.gives]]
    often = times.per_step(taken)
    growing = not needed.gives.any()
    if times.whole or (growing and (facts.steps_source != "marks" or len(times) < LEAST_STEPS)):
        return False
    half = len(often) // 2
    return times.in_most(taken) and bool(2 * often[len(often) - half :].sum() >= often[:half].sum())


def _uncached(facts: Facts, calls: Allocations) -> Suspect:
    taken = calls.row[~calls.gives]
    often = len(taken) / len(facts.get(steady))
    return Suspect(
        title=f"Nothing is cached: the driver is asked for device memory {often:.3g} times a step, and gets it back",
        rows=np.sort(taken),
        change=Change(shortened=calls.row),
        fix="Start without PYTORCH_NO_CUDA_MEMORY_CACHING (or PYTORCH_NO_HIP_MEMORY_CACHING): it turns PyTorch's "
        "caching allocator off and is meant for memory checkers.",
        reason="nearly as many calls that give device memory back as calls that take it, all over the step",
    )


RULE = Rule("alloc-cudamalloc-steady", Family.MEMORY, check, frozenset({Need.DEVICE}))
