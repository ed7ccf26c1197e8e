"""An average of the weights is updated tensor by tensor.

## What it finds
An exponential moving average, or a target network, whose update loops over the tensors of a model outside of the
optimizer.

## Why it is slow
Two or three operators a tensor: a model of 600 tensors makes 1200 launches a step for work that one multi-tensor
operator does in a handful.

## How it is detected
The same short sequence of operators (`mul_` `add_`, `lerp_`, `sub` `mul` `sub_` and their like) at least 16 times in a
row on one thread, outside of optimizers and of the backward pass, in most steady steps. The gain replays the step with
2 us a tensor and one operator's cost in its place, with the kernels' work; the least gain leaves the kernels' time.

## When it does not matter
An update every so many steps is left out, and so is one of a few tensors. An average that is kept on the host is
another rule's: `offload-thrash`.

## How to fix it
Before:

```python
for average, weight in zip(ema.parameters(), model.parameters()):
    average.mul_(0.999).add_(weight, alpha=0.001)
```

After:

```python
torch._foreach_lerp_(list(ema.parameters()), list(model.parameters()), 0.001)
```

Or `torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))`.

## References
- ultralytics/ultralytics#25315: 594 tensors, 1188 launches; 12.8 ms became 5.8
- open-mmlab/mmengine#519
- huggingface/diffusers#7685
- pytorch/pytorch#94820
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.averages import averages
from torchdiag.timeline.facts.call_costs import batched
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that averages."""
    found, trace = facts.get(averages), facts.trace
    first = np.array([item.first for item in found], np.int64)
    last = np.array([item.last for item in found], np.int64)
    tensors = np.array([item.tensors for item in found], np.int64)
    for place in few_places(facts, first):
        runs = np.stack((first[place.chosen], last[place.chosen]), axis=1)
        number = int(tensors[place.chosen].sum())
        took = trace.ts_ns[runs[:, 1]] + trace.dur_ns[runs[:, 1]] - trace.ts_ns[runs[:, 0]]
        yield Suspect(
            title=f"An average of {number / len(runs):.4g} tensors is updated one by one {place.how_often}{place.at}: "
            f"{time_text(float(took.mean()))}",
            rows=runs[:, 0].copy(),
            where=place.where,
            change=batched(facts, runs, number),
            cautious=batched(facts, runs, number, kernels=False),
            hopeful=batched(facts, runs, number, work=0.0),
            fix=f"Update all of them at once{place.at}: torch._foreach_lerp_(averages, weights, 1 - decay), or "
            "AveragedModel with get_ema_multi_avg_fn.",
            reason="the same few operators again and again, outside of optimizer and backward pass; the gain assumes "
            "2 us a tensor for a multi-tensor operator, the least gain leaves the kernels' time, the most none of "
            "the host's work",
            confidence="high" if place.where.file else "medium",
        )


RULE = Rule("ema-for-loop", Family.LAUNCH, check)
