"""Near the memory limit the allocator frees its cache and tries again.

## What it finds
An allocation that the driver refuses, after which PyTorch gives its cached blocks back and asks once more, again and
again during training.

## Why it is slow
Giving blocks back makes the host wait for the device, and the blocks are taken anew one by one in the steps that
follow. A retry can take hundreds of milliseconds.

## How it is detected
Inside one operator, and without a launch in between: a call that takes device memory, a run of calls that give it
back, and a call that takes memory. At least two of these in steady steps count, however far apart. The gain is the
steps replayed without these calls, spread over all steady steps. Where memory events were recorded, the reason tells
how much of the device's memory was reserved.

## When it does not matter
A single retry may be a longest batch. Freed blocks below `torch.cuda.empty_cache()` belong to empty-cache-in-loop.

## How to fix it
Before:

```python
loss = model(batch).loss  # lengths vary, memory 95 % full
```

After:

```python
model.gradient_checkpointing_enable()  # or a smaller batch, or lengths padded to a few sizes
loss = model(batch).loss
```

`PYTORCH_ALLOC_CONF=expandable_segments:True` and `garbage_collection_threshold:0.8` reduce fragmentation, but not the
peak: where they are set already, only a lower peak helps.

## References
- pytorch/pytorch#135837: retries from 70 of 80 GB reserved on, with expandable segments as well
"""

import math
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.allocations import Reason, allocations
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

LEAST_RETRIES = 2


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all retries."""
    calls, times = facts.get(allocations).of(Reason.RETRIED), facts.get(steady)
    rows = calls.first
    if len(rows) < LEAST_RETRIES:
        return
    where = facts.get(whereabouts).most(rows)
    at = f", mostly at {where.label}" if where.label else ""
    lasted = facts.trace.dur_ns[calls.row].sum() / len(rows) / 1e6
    full = _reserved_share(facts)
    told = "" if full is None else f"; up to {full:.0%} of the device's memory was reserved"
    on = calls.expandable(facts.trace)
    more = "" if on else "; PYTORCH_ALLOC_CONF=expandable_segments:True helps where memory is fragmented"
    told += "; expandable segments are on already" if on else ""
    span = "the trace" if times.whole else f"{len(times)} steps"
    yield Suspect(
        title=f"{len(rows)} allocations in {span} were refused and tried again after freeing the cache "
        f"({lasted:.3g} ms each){at}",
        rows=rows,
        where=where,
        change=Change(unblocked=calls.row[calls.gives], shortened=calls.row[~calls.gives]),
        fix=f"Lower the peak of memory: checkpointing, a smaller batch, or lengths padded to a few sizes{more}.",
        reason=f"take, give back, take again inside one operator{told}",
    )


def _reserved_share(facts: Facts) -> float | None:
    """The most that the allocator held, as a share of the device's memory; None where the trace does not tell."""
    column = facts.trace.args.total_reserved
    properties = facts.trace.metadata.get("deviceProperties")
    kinds = facts.trace.args.memory_device_type.at(column.rows.astype(np.int64), 0)
    held = column.values[kinds > 0]
    if not len(held) or not isinstance(properties, list) or not properties:
        return None
    first = cast(list[Any], properties)[0]
    total = cast(dict[str, Any], first).get("totalGlobalMem") if isinstance(first, dict) else None
    if not isinstance(total, int | float) or not math.isfinite(total) or total <= 0:
        return None
    return float(held.max()) / total


RULE = Rule("alloc-retry-flush", Family.MEMORY, check, frozenset({Need.DEVICE}))
