"""Gradients are communicated in every micro-step of an accumulation.

## What it finds
Gradient accumulation with DistributedDataParallel in which each backward pass reduces the gradients over all
processes, though only the last one before the optimizer's step needs to.

## Why it is slow
With k micro-steps the gradients travel k times instead of once. On slow links that is most of the step.

## How it is detected
Two or more `DistributedDataParallel.forward` to an `Optimizer.step`, each followed by the reducer's operators
(`reducer::mul_out`, `copy_bucket_to_grad`). The gain is the steps replayed without the all-reduces of all micro-steps
but the last, and without what the reducer does for them.

## When it does not matter
Two forward passes with one backward pass reduce once: they are no accumulation. Sharded data parallelism may need the
communication to save memory. Models with unused parameters must take part in the last micro-step.

## How to fix it
Before:

```python
for index, batch in enumerate(micro_batches):
    model(batch).backward()
optimizer.step()
```

After:

```python
for index, batch in enumerate(micro_batches):
    last = index + 1 == len(micro_batches)
    with contextlib.nullcontext() if last else model.no_sync():
        model(batch).backward()  # the forward pass belongs inside as well
optimizer.step()
```

With FSDP2: `model.set_requires_gradient_sync(last)`.

## References
- goodfire-ai/spd#215
- mosaicml/composer#48: strategies compared
- pytorch/pytorch#69031: what unused parameters need
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.collective_reasons import Reason, collective_reasons, without
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.micro_steps import REDUCER, micro_steps
from torchdiag.timeline.facts.nesting import operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

LEAST = 2
"""Micro-steps that reduce in vain, in all: one may be a pass that is no accumulation."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all that is reduced in vain."""
    trace, times, told = facts.trace, facts.get(steady), facts.get(micro_steps)
    vain = int(np.count_nonzero(told.redundant))
    if vain < LEAST:
        return
    reduces = operators(trace, "c10d::allreduce_")
    reduces = reduces[told.of(trace.ts_ns[reduces])]
    gathered = operators(trace, *REDUCER)
    gathered = gathered[told.of(trace.ts_ns[gathered])]
    table = facts.get(collective_reasons).of(Reason.MICRO_STEP)
    rows = np.sort(reduces) if len(reduces) else np.sort(table.kernels.row) if len(table) else np.sort(gathered)
    where = facts.get(whereabouts).most(rows if len(reduces) else gathered)
    yield Suspect(
        title=f"Gradients are reduced in each of {told.accumulated:.3g} micro-steps to an optimizer step: "
        f"{vain / len(times):.3g} times a step in vain",
        rows=rows,
        where=where,
        change=without(table, reduces, gathered),
        fix="Run all micro-steps but the last one, forward and backward, inside `with model.no_sync():`.",
        reason="the reducer works after every forward pass between two steps of the optimizer",
    )


RULE = Rule("ddp-sync-every-microstep", Family.COMMUNICATION, check)
