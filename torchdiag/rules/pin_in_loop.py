"""Host memory is pinned anew in every step.

## What it finds
Allocations of pinned memory (`cudaHostAlloc`, `cudaHostRegister`, `cudaFreeHost`) in steady steps, and
`tensor.pin_memory()` in the step itself.

## Why it is slow
Pinning pages takes the driver hundreds of microseconds to milliseconds, under locks that other threads' launches need
too. PyTorch keeps pinned blocks for reuse, but sizes that vary defeat that. Pinning a tensor in the loop also copies
it once more, on the thread that launches.

## How it is detected
Calls that allocate, register or free pinned memory, on any thread, in most steady steps; or `aten::pin_memory` on the
thread of the step's own work in most of them, where it allocates or takes at least 1 % of the step. The gain is the
step replayed without these calls; where the tensor is pinned in the step itself, the most it can be is the time of
the whole operator.

## When it does not matter
The first steps fill the store of pinned blocks: calls that later steps do not make are no finding. A loader's pin
thread works in the background; where no launch waits for it, nothing is gained.

## How to fix it
Before:

```python
for batch in loader:
    batch = batch.pin_memory().to("cuda", non_blocking=True)
```

After:

```python
loader = DataLoader(dataset, pin_memory=True, collate_fn=pad_to_a_few_lengths)
for batch in loader:
    batch = batch.to("cuda", non_blocking=True)
```

Or keep one pinned staging buffer of the largest size and `copy_` into it. Small batches need no pinning at all.

## References
- pytorch/pytorch#124456: host allocations in every training step
- allenai/allennlp#4670 and facebookresearch/ParlAI#1383: training became slower with pinning
"""

import re
from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.nesting import named, nesting, operators
from torchdiag.timeline.facts.span import span_ns
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

PINS = re.compile(r"^(cuda|hip)(HostAlloc|HostMalloc|MallocHost|HostRegister|FreeHost|HostFree|HostUnregister)(_|$)")
LEAST_SHARE = 0.01
"""Pinning into blocks that are there already matters from this share of a step on."""
FEW_STEPS = 3
"""With fewer steady steps the store of pinned blocks may still be filling."""


def check(facts: Facts) -> Iterator[Suspect]:
    """Suspects for tensors pinned in the step, and for pinned memory that is allocated otherwise."""
    trace, tree, times = facts.trace, facts.get(nesting), facts.get(steady)
    if times.whole:
        return
    calls = times.rows(facts, named(trace, Kind.RUNTIME, lambda name: PINS.match(name) is not None))
    pins = times.rows(facts, tree.tops(operators(trace, "aten::pin_memory", "aten::_pin_memory")))
    pins = pins[trace.track[pins] == facts.partition.driver]
    inside = tree.below(calls, pins)
    surely = "medium" if len(times) >= FEW_STEPS else "low"
    for place in few_places(facts, pins):
        here = pins[place.chosen]
        allocating = calls[tree.below(calls, here)]
        if not times.in_most(trace.ts_ns[allocating]) and trace.dur_ns[here].sum() < LEAST_SHARE * facts.get(span_ns):
            continue
        yield Suspect(
            title=f"A tensor is pinned {place.how_often}{place.at}, on the thread that launches",
            rows=here,
            where=place.where,
            change=Change(shortened=np.union1d(here, allocating)),
            cautious=Change(shortened=allocating),
            fix=f"Let the DataLoader pin (pin_memory=True) instead of pin_memory(){place.at}, or copy into one pinned "
            "buffer that is kept; leave pinning out where the batch is small.",
            reason=f"pin_memory in the step itself, with {len(allocating) / len(times):.3g} allocations of pinned "
            "memory a step; the least gain is that of the allocations alone",
            confidence=surely,
        )
    for place in few_places(facts, calls[~inside]):
        here = calls[~inside][place.chosen]
        yield Suspect(
            title=f"Pinned memory is allocated or freed {place.how_often}{place.at}",
            rows=here,
            where=place.where,
            change=Change(shortened=here),
            fix="Keep the shapes of batches constant (pad to a few lengths) so that pinned blocks are reused, or keep "
            "one pinned buffer of the largest size.",
            reason="allocations of pinned memory in nearly every steady step: its blocks are not reused",
            confidence=surely,
        )


RULE = Rule("pin-in-loop", Family.TRANSFER, check, frozenset({Need.DEVICE, Need.STEPS}))
