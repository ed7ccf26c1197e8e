"""A loop in Python computes element by element what one operator computes at once.

## What it finds
One function that calls the same operator on tensors of the same shape again and again: for each sample, head, box or
time step.

## Why it is slow
Each operator costs the host some microseconds, whatever it computes. A hundred on a row each take a hundred times as
long as one on the whole matrix, and the device gets a kernel too small to fill it every few microseconds.

## How it is detected
With stacks and shapes: at least 24 calls of an operator that computes, on one shape, in one call of a function, without
a module called in between. Without stacks: the same few operators at least 32 times in a row, one of which picks an
element (`select`, `slice`). In most steady steps; optimizers, averages of weights and the backward pass have rules of
their own. The gain replays the step with one round of the loop and the work of all; the least gain is half of that.

## When it does not matter
Rounds that need the result of the one before cannot be batched: the trace does not tell. Compiling the loop, or
capturing it as a CUDA graph, takes most of its cost even then.

## How to fix it
Before:

```python
for i in range(len(x)):
    out[i] = x[i] * weight[i]
```

After:

```python
out = x * weight
```

`torch.vmap(f)(x)` batches a function, `torch.stack` and nested tensors what has different sizes.

## References
- mindee/doctr#2141: 52 calls of a loss in a step became one: 434 ms became 13
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.call_costs import merged, work_share
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.loops import loops
from torchdiag.timeline.facts.nesting import nesting
from torchdiag.timeline.facts.operator_order import operator_order

LEAST_SHARE = 0.005
TINY_NS = 50_000
"""Kernels that take longer than this on average are not small."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that loops."""
    trace, found, order = facts.trace, facts.get(loops), facts.get(operator_order)
    for place in few_places(facts, np.array([loop.first for loop in found], np.int64)):
        here = [found[int(index)] for index in place.chosen]
        runs = np.array([(loop.first, loop.last) for loop in here], np.int64)
        took = trace.ts_ns[runs[:, 1]] + trace.dur_ns[runs[:, 1]] - trace.ts_ns[runs[:, 0]]
        launched = facts.partition.activities.row[facts.get(nesting).launched_below(order.through(runs))]
        if took.sum() < LEAST_SHARE * place.times.total_ns or not _tiny(facts, launched):
            continue
        rounds_of_all = max(sum(loop.rounds for loop in here), 1)
        one = Change(runs=runs, host_scale=len(here) / rounds_of_all)  # the cost of one round of each
        all_work = replace(one, host_scale=min(one.host_scale + _work(facts, runs), 1.0))
        calls = len(launched) * len(here) / rounds_of_all
        rounds = rounds_of_all / len(here)
        often = sum(loop.often for loop in here) / len(here)
        yield Suspect(
            title=f"A loop of {rounds:.4g} rounds calls {here[0].operator} and the like {often:.4g} times, "
            f"{place.how_often}{place.at}: {time_text(float(took.mean()))}",
            rows=runs[:, 0].copy(),
            where=place.where,
            change=merged(facts, all_work, launched, calls),
            cautious=Change(runs=runs, host_scale=(1 + all_work.host_scale) / 2),
            hopeful=merged(facts, one, launched, calls),
            fix=f"Compute all rounds at once{place.at}: batch the tensors (torch.stack, torch.vmap, nested ones); if "
            "each round needs the one before, compile the loop with torch.compile.",
            reason="the same operators on the same shapes again and again; the gain assumes that the rounds do not "
            "depend on one another, the least gain is half of it, the most leaves no work of the host",
            confidence="medium" if place.where.file else "low",
        )


def _work(facts: Facts, runs: NDArray[np.int64]) -> float:
    """The host's own work in the operators of the loops, as a share of the loops' time."""
    inside = facts.get(operator_order).through(runs)
    took = facts.trace.ts_ns[runs[:, 1]] + facts.trace.dur_ns[runs[:, 1]] - facts.trace.ts_ns[runs[:, 0]]
    return work_share(facts, inside) * float(facts.trace.dur_ns[inside].sum()) / max(int(took.sum()), 1)


def _tiny(facts: Facts, launched: NDArray[np.int64]) -> bool:
    return not len(launched) or float(facts.trace.dur_ns[launched].mean()) < TINY_NS


RULE = Rule("python-loop-small-ops", Family.LAUNCH, check)
