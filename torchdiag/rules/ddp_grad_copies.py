"""Gradients are copied into the buckets of DistributedDataParallel and back.

## What it finds
DistributedDataParallel without `gradient_as_bucket_view=True`: each gradient is copied into a bucket before the
all-reduce and out of it after.

## Why it is slow
Two small operators for each parameter and step: hundreds of launches, and memory traffic of twice the gradients. The
gradients also take their memory twice.

## How it is detected
The reducer's `copy_bucket_to_grad` in most steady steps. The gain is the step replayed without these operators and
the kernels they launch. The most that can be won includes the copies into the buckets (`reducer::mul_out`), which
vanish as well where gradients are not set to None between steps.

## When it does not matter
The second step of a run rebuilds the buckets: what happens once is no finding. Code that keeps references to the
gradients of the step before breaks when they are views of buckets.

## How to fix it
Before:

```python
model = DistributedDataParallel(model)
```

After:

```python
model = DistributedDataParallel(model, gradient_as_bucket_view=True)
```

## References
- huggingface/lerobot#4607: 2 of 28 ms
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.micro_steps import REDUCER, micro_steps
from torchdiag.timeline.facts.nesting import nesting, operators
from torchdiag.timeline.facts.steady import steady

Rows = NDArray[np.int64]


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for the copies of all gradients."""
    times, vain = facts.get(steady), facts.get(micro_steps)
    into, out = (_needed(facts, operators(facts.trace, name)) for name in REDUCER)
    if not len(out) or not times.in_most(facts.trace.ts_ns[out]):
        return
    with_more = "; those of micro-steps that reduce in vain are left out" if vain.redundant.any() else ""
    yield Suspect(
        title=f"{len(out) / len(times):.3g} gradients a step are copied out of DistributedDataParallel's buckets",
        rows=out,
        change=_gone(facts, out),
        hopeful=_gone(facts, np.union1d(into, out)),
        fix="Construct DistributedDataParallel with gradient_as_bucket_view=True, unless gradients are kept beyond the "
        "next step.",
        reason="copy_bucket_to_grad runs for each gradient; the most also saves the copies into the "
        f"buckets{with_more}",
    )


def _needed(facts: Facts, rows: Rows) -> Rows:
    rows = facts.get(steady).rows(facts, rows)
    return rows[~facts.get(micro_steps).of(facts.trace.ts_ns[rows])]


def _gone(facts: Facts, rows: Rows) -> Change:
    activities = facts.partition.activities
    return Change(shortened=rows, removed=activities.row[facts.get(nesting).launched_below(rows)])


RULE = Rule("ddp-grad-copies", Family.COMMUNICATION, check)
