"""Logits over a large vocabulary are written out several times.

## What it finds
Language models whose loss reads and writes [tokens, vocabulary] tensors in many passes: conversion to float, log
softmax, loss, and all of it again backwards.

## Why it is slow
With 32,000 words or more the logits are the largest tensors of the step.

## How it is detected
Kernels on tensors of the size that a log softmax takes whose last dimension is 32,000 or more, with a tenth of the
kernels' time. The products that make the logits are not counted. The gain replays the step with half of that time;
between none and four fifths.

## When it does not matter
Small batches.

## How to fix it
Before:

```python
loss = F.cross_entropy(logits.float().view(-1, vocab), labels.view(-1))
```

After:

```python
loss = torch.compile(F.cross_entropy)(logits.view(-1, vocab), labels.view(-1))  # or a fused, chunked linear + loss
```

## References
- vllm-project/speculators#1111: the forward kernel of a fused loss, 73.9 ms became 4.3
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import elements, inputs
from torchdiag.timeline.facts.kernel_names import Sort, sorts
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.nesting import operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

LARGE, SHARE, TOKENS = 32_000, 0.1, 64


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all passes over the logits."""
    times, found, given = facts.get(steady), facts.get(kernels).compute(), facts.get(inputs)
    softmax = times.rows(facts, operators(facts.trace, "aten::_log_softmax"))
    sizes = {
        elements(dims[0])
        for row in softmax.tolist()
        if (dims := given.dims(row)) and dims[0] and dims[0][-1] >= LARGE and elements(dims[0]) >= TOKENS * LARGE
    }
    launched = found.part(found.operator >= 0)
    if not sizes or not len(launched):
        return
    _, first, same = np.unique(given.codes(launched.operator), return_index=True, return_inverse=True)
    on_logits = [any(elements(s) in sizes for s in given.dims(row)) for row in launched.operator[first].tolist()]
    slow = launched.part(np.array(on_logits, np.bool_)[same] & (sorts(launched) != Sort.GEMM))
    share = float(slow.dur_ns.sum()) / max(float(found.dur_ns.sum()), 1.0)
    if share < SHARE:
        return
    where = facts.get(whereabouts).most(softmax)
    at = f" at {where.label}" if where.label else ""
    yield Suspect(
        title=f"The loss{at} goes over logits of {max(sizes):,} elements {len(slow) / len(times):.3g} times a step, "
        f"{100 * share:.0f} % of the kernels' time",
        rows=slow.row,
        where=where,
        change=Change(scaled=slow.row, device_scale=0.5),
        cautious=Change(scaled=slow.row, device_scale=1.0),
        hopeful=Change(scaled=slow.row, device_scale=0.2),
        fix=f"Compile the loss{at}, or use a chunked, fused linear and cross-entropy; keep the logits in half.",
        reason="that a fused loss saves half of the passes is assumed",
        confidence="medium",
    )


RULE = Rule("loss-large-vocab", Family.KERNEL, check, frozenset({Need.DEVICE, Need.SHAPES}))
