"""Weights, gradients or optimizer state travel between host and device in every step.

## What it finds
A module, or parts of it, that is moved to the device for its turn and back to the host after, in each step (CPU
offload), and state that is kept on the host, such as an average of the weights.

## Why it is slow
The link to the host is many times slower than the device's memory. Unless the copies hide behind computing, a step
cannot be faster than its parameters take to travel.

## How it is detected
Copies made below the functions that move a module (`Module.to`, `Module._apply`, Accelerate's hooks, FSDP's parameter
handling); without stacks, at least four different sizes of which a steady step copies as many to the device as to the
host. The gain is the step replayed without these copies; the least gain keeps them and only ends the waits.

## When it does not matter
Often the memory of the device leaves no choice: read the finding as the price of that choice. Copies that hide behind
computing cost nothing and are reported as latent.

## How to fix it
Before:

```python
for block in blocks:
    block.to("cuda")
    x = block(x)
    block.to("cpu")
```

After:

```python
policy = CPUOffloadPolicy(pin_memory=True)
for block in blocks:
    fully_shard(block, offload_policy=policy)  # pinned, and fetched ahead
```

Offload fewer blocks, or quantise them, as far as memory allows.

## References
- huggingface/diffusers#7685: the price of sequential offloading
- lucidrains/ema-pytorch#5: an average of the weights that is kept on the host
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import bytes_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.copies import TO_DEVICE
from torchdiag.timeline.facts.copy_changes import asynchronous, waits
from torchdiag.timeline.facts.copy_reasons import Reason, copy_reasons
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

LEAST_BYTES = 1 << 20
"""Moving less than this in a step is no offloading."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for everything that a module holds and that travels."""
    accused, times = facts.get(copy_reasons).of(Reason.OFFLOAD), facts.get(steady)
    if not len(accused) or times.whole or not times.in_most(facts.trace.ts_ns[accused.copies.call]):
        return
    size = np.maximum(accused.copies.size_bytes, 0) / len(times)
    inward = float(size[accused.copies.direction == TO_DEVICE].sum())
    outward = float(size.sum()) - inward
    if inward + outward < LEAST_BYTES:
        return
    where = facts.get(whereabouts).most(accused.copies.call)
    at = f", most of them at {where.label}" if where.label else ""
    yield Suspect(
        title=f"Offloading copies {bytes_text(inward)} to the device and {bytes_text(outward)} back in a step{at}",
        rows=accused.copies.row,
        where=where,
        change=Change(unblocked=waits(accused.copies), removed=accused.copies.row),
        cautious=asynchronous(accused),
        fix="Keep as much of it on the device as memory allows (fewer offloaded layers, quantised weights); offload "
        "the rest pinned and fetched ahead: CPUOffloadPolicy(pin_memory=True) of FSDP2.",
        reason="what a module holds is copied in every step; the least gain keeps the copies and only ends the waits",
        confidence="medium",
    )


RULE = Rule("offload-thrash", Family.TRANSFER, check, frozenset({Need.DEVICE, Need.STEPS}))
