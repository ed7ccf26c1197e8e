"""Collectives take much longer than their fastest: perhaps a rank is late.

## What it finds
Exposed collectives of one kind and size whose time varies widely from one to the next.

## Why it is slow
A collective ends when the last process has joined it. If one rank is late (more data, a slower device, a pause of its
garbage collector), all others spend the difference inside the collective's kernel.

## How it is detected
In one trace, collectives of the same kind and size (or, where sizes are not recorded, at the same place of each step)
of which most take more than twice as long as the fastest, with at least 2 % of the steady steps spent beyond that.
The verdict is always that this trace cannot tell: the same picture is drawn by a network that others use too. With
the traces of all ranks, the late one has the shortest kernels.

## When it does not matter
Communication that hides behind computing waits for free. Times of different sizes are never compared, and neither are
starts on different hosts, whose clocks differ.

## How to fix it
Before:

```python
sampler = DistributedSampler(dataset)  # whatever lengths come
loader = DataLoader(dataset, batch_size=16, sampler=sampler)
```

After:

```python
batches = LengthBuckets(dataset, tokens=16_384)  # your own: about as many tokens on each rank in each step
loader = DataLoader(dataset, batch_sampler=batches)
gc.disable()  # and gc.collect() on all ranks at the same steps
```

First record all ranks, to see whether one is late at all, and whether it is always the same: then it is a slow node.

## References
- AMD-AGI/TraceLens#599
- deepspeedai/DeepSpeed#3579
- NVIDIA/nccl#361 and NVIDIA/nccl#470
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.collective_reasons import alone
from torchdiag.timeline.facts.collectives import Collectives, collectives
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.span import span_ns
from torchdiag.timeline.facts.steady import steady

LEAST_SHARE = 0.02
"""Time beyond the fastest, as a share of the steps."""
SLOWER = 2.0
"""Most collectives of a kind and size take so many times as long as the fastest."""
LEAST_NUMBER = 4
"""So many of a kind and size tell what the fastest is."""


def check(facts: Facts) -> Iterator[Suspect]:
    """At most one suspect, which never says more than that other traces are needed."""
    table, times = facts.get(collectives), facts.get(steady)
    if not len(table) or alone(facts):
        return
    beyond = _beyond_the_fastest(table, len(times))
    waiting = np.flatnonzero(beyond > 0)
    lost = int(beyond.sum())
    if lost < LEAST_SHARE * facts.get(span_ns):
        return
    kinds = ", ".join(sorted({table.kind[index] or "communication" for index in waiting.tolist()}))
    yield Suspect(
        title=f"Collectives ({kinds}) take {lost / len(times) / 1e6:.3g} ms a step more than the fastest of their size "
        f"({lost / facts.get(span_ns):.0%} of the step): a late rank or a busy network",
        rows=table.kernels.row[waiting],
        fix="Record the traces of all ranks: the rank whose kernel of the same collective is the shortest is the late "
        "one.",
        reason="cannot be told from one rank; record all ranks over the same steps and compare how long each "
        "collective takes",
        confidence="low",
        verdict="cannot-tell",
    )


def _beyond_the_fastest(table: Collectives, steps: int) -> NDArray[np.int64]:
    """int64[k]: exposed time of each beyond the fastest that is like it, where most are much slower than that."""
    groups: dict[tuple[str, int, int], list[int]] = {}
    for index, key in enumerate(zip(table.kind, _alike(table, steps), table.ranks.tolist(), strict=True)):
        if key[1]:
            groups.setdefault(key, []).append(index)
    beyond = np.zeros(len(table), np.int64)
    for members in groups.values():
        chosen = np.array(members, np.int64)
        took = table.kernels.dur_ns[chosen]
        if len(chosen) >= LEAST_NUMBER and np.median(took) > SLOWER * took.min():
            beyond[chosen] = np.minimum(took - took.min(), table.exposed_ns[chosen])
    return beyond


def _alike(table: Collectives, steps: int) -> list[int]:
    """Equal numbers for collectives of one kind that carry as much: as many bytes, or, where the trace does not tell
    them, the same place in each of the steps; 0 for what is like nothing else."""
    alike = np.maximum(table.size_bytes, 0)
    for kind in set(table.kind):
        mine = np.flatnonzero(table.of_kind(kind) & (table.size_bytes < 0))
        often = np.bincount(table.kernels.step[mine], minlength=steps)
        if len(mine) and (often == often[0]).all():
            order = mine[np.lexsort((table.kernels.start_ns[mine], table.kernels.step[mine]))]
            alike[order] = -1 - np.arange(len(order)) % often[0]
    return alike.tolist()


RULE = Rule("comm-straggler", Family.COMMUNICATION, check, frozenset({Need.DEVICE}))
