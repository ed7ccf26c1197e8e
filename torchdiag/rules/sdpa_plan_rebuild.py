"""cuDNN attention plans anew for every new length.

## What it finds
Calls of `scaled_dot_product_attention` with cuDNN's backend that block the host for milliseconds up to a second,
whenever their shapes are new.

## Why it is slow
The cuDNN backend builds an execution plan per shape. With batches of ever new lengths every other step pays for one.

## How it is detected
Calls of `aten::_scaled_dot_product_cudnn_attention` or its backward in steady steps that take at least 2 ms and ten
times as long as those of shapes seen before (as their median where there are none), with shapes that were not. The gain
replays the step with these calls at their usual length.

## When it does not matter
The first call of a program. A few fixed lengths are planned for once.

## How to fix it
Before:

```python
out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # every batch has another length
```

After:

```python
from torch.nn.attention import SDPBackend, sdpa_kernel

with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
```

## References
- modelscope/FunASR#3705: 59 of 382 steps paid about a second each
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.slow_calls import slow_calls
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

ATTENTION = frozenset(
    ("aten::_scaled_dot_product_cudnn_attention", "aten::_scaled_dot_product_cudnn_attention_backward")
)
SLOWER, LEAST_NS = 10, 2_000_000


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all plans of the forward, one for those of the backward pass."""
    times = facts.get(steady)
    for calls in slow_calls(facts, ATTENTION, SLOWER, LEAST_NS):
        rows = calls.slow[calls.new_shape]
        if not len(rows):
            continue
        stricken = int(np.count_nonzero(times.per_step(facts.trace.ts_ns[rows])))
        where = facts.get(whereabouts).most(rows)
        spent = facts.trace.dur_ns[rows]
        yield Suspect(
            title=f"cuDNN attention plans for new shapes in {stricken} of {len(times)} warm steps, "
            f"{float(spent.mean()) / 1e6:.3g} ms each",
            rows=rows,
            where=where,
            change=Change(shortened=rows, host_scale=min(calls.usual_ns * len(rows) / float(spent.sum()), 1.0)),
            fix=f"Choose other backends{f' at {where.label}' if where.label else ''}: "
            "sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]), or pad to a few lengths.",
            reason=f"{calls.shapes} shapes in {calls.calls} calls, and the slow calls are those with a new one",
        )


RULE = Rule("sdpa-plan-rebuild", Family.COMPILE, check, frozenset({Need.DEVICE, Need.SHAPES, Need.STEPS}))
