"""Arithmetic on numbers too small to be normal.

## What it finds
Runs on a CPU in which one call of an operator takes ten times as long, step after step, as another on the same shapes.

## Why it is slow
Floating-point numbers below 1e-38 are computed in microcode: a hundred times slower on many processors. Weights and
running means that decay towards zero come to it after a while; the values look like zeros.

## How it is detected
Without a device and with shapes: of the matrix products, convolutions and arithmetic on one shape in a step, one takes
at least ten times the median of the others and 50 us more, in most steady steps, at the same turn. Or all of them take
five times as long in the last third of the steps as in the first. The trace does not show values, so that the finding
only asks for a try.

## When it does not matter
Tensors that are not contiguous, caches, and processors shared with others make calls unequal, too. GPUs are not slower
on such numbers.

## How to fix it
Before:

```python
loss = step(batch)
```

After:

```python
torch.set_flush_denormal(True)  # once, before the loop, in each thread that computes
loss = step(batch)
```

## References
- pytorch/pytorch#23862
- pytorch/pytorch#19651
- pytorch/pytorch#4737
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import inputs
from torchdiag.timeline.facts.nesting import operators
from torchdiag.timeline.facts.operator_order import operator_order
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

COMPUTES = tuple(f"aten::{name}" for name in (
    "mm", "bmm", "addmm", "linear", "matmul", "conv1d", "conv2d", "conv3d", "mul", "mul_", "add", "add_", "addcmul_",
    "addcdiv_", "lerp_",
))  # fmt: skip
SLOWER = 10.0
DRIFTED = 5.0
MORE_NS = 50_000
FEWEST_STEPS = 3
DRIFT_STEPS = 9


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all calls that are slow in every step."""
    trace, times = facts.trace, facts.get(steady)
    if facts.partition.devices or len(times) < FEWEST_STEPS:
        return
    tops = np.intersect1d(facts.get(operator_order).row, operators(trace, *COMPUTES))
    rows = times.rows(facts, tops[facts.get(inputs).codes(tops) >= 0])
    rows = rows[np.argsort(trace.ts_ns[rows], kind="stable")]
    kinds: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for row, shape in zip(rows.tolist(), facts.get(inputs).codes(rows).tolist(), strict=True):
        kinds[int(trace.name[row]), shape].append(row)
    slow = [found for members in kinds.values() for found in (_slow(facts, np.array(members, np.int64)),) if len(found)]
    if not slow:
        return
    found = np.sort(np.concatenate(slow))
    where = facts.get(whereabouts).most(found)
    at = f", most of them at {where.label}" if where.label else ""
    yield Suspect(
        title=f"{len(found) / len(times):.3g} calls a step take ten times as long as the same operator does on the "
        f"same shapes, {time_text(float(trace.dur_ns[found].sum()) / len(times))} in all{at}",
        rows=found,
        where=where,
        fix="Try torch.set_flush_denormal(True) before the loop, and compare the time of a step; look at the smallest "
        "values of these tensors.",
        reason="the same calls are slow in every step, others on their shapes are not; values are not in a trace: run "
        "once with denormals flushed",
        confidence="low",
        verdict="cannot-tell",
    )


def _slow(facts: Facts, members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of the calls of one operator on one shape, in order: those slow at the same turn of every step, or late."""
    trace, times = facts.trace, facts.get(steady)
    step = times.of(trace.ts_ns[members])
    counts = np.bincount(step, minlength=len(times))
    if counts.min() != counts.max():
        return members[:0]
    took = trace.dur_ns[members].reshape(len(times), -1)
    turn = np.median(took, axis=0)
    usual = float(np.median(turn))
    odd = (turn >= SLOWER * usual) & (turn >= usual + MORE_NS) & ((took >= SLOWER * usual).mean(axis=0) >= 0.8)
    if took.shape[1] >= 3 and odd.any():
        return members.reshape(len(times), -1)[:, odd].ravel()
    total, third = took.sum(axis=1), len(times) // 3
    if len(times) >= DRIFT_STEPS and np.median(total[-third:]) >= DRIFTED * np.median(total[:third]) + MORE_NS:
        return members[step >= len(times) - third]
    return members[:0]


RULE = Rule("cpu-denormals", Family.PAUSE, check, frozenset({Need.SHAPES, Need.STEPS}))
