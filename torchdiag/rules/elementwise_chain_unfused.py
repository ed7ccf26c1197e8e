"""Long chains of small operations read and write the same tensor again and again.

## What it finds
Normalisations, activations or rotary embeddings written as many elementwise operators, one kernel each.

## Why it is slow
Each kernel reads its inputs from memory and writes its result back. A fused kernel does so once for the whole chain.

## How it is detected
Runs of at least three elementwise or reducing kernels of different operators on one stream, one after the other, on
tensors of like size, with a fifth of the kernels' time or more, where the device is busy most of the time. The gain
takes half of what (k - 1) of every k kernels take; at most all of it.

## When it does not matter
Where the device waits for launches, that is the bug: see launch-bound-small-kernels. An optimizer that loops over its
parameters has a rule of its own.

## How to fix it
Before:

```python
var = x.float().pow(2).mean(-1, keepdim=True)
x = (x.float() * torch.rsqrt(var + eps)).to(dtype) * weight
```

After:

```python
x = F.rms_norm(x, (x.size(-1),), weight, eps)  # or torch.compile the module
```

## References
- huggingface/transformers#48692: RMSNorm in single operators, 0.60 s a step became 0.48
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.idle import gpu_busy
from torchdiag.timeline.facts.inputs import elements, inputs
from torchdiag.timeline.facts.kernel_names import Sort, sorts
from torchdiag.timeline.facts.kernels import Kernels, kernels
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind

SHARE, BUSY, LEAST = 0.2, 0.7, 3
SIMILAR = 4


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all chains, at the line with the most of them."""
    found = facts.get(kernels).compute()
    if (facts.get(gpu_busy) or 0.0) < BUSY or not len(found):
        return
    order = np.lexsort((found.start_ns, found.stream, found.device))
    found = found.part(order)
    number, length = _chains(facts, found)
    inside = length >= LEAST
    chain = found.part(inside)
    total = float(found.dur_ns.sum())
    if float(chain.dur_ns.sum()) < SHARE * total:
        return
    first = np.flatnonzero(inside & np.append(True, number[1:] != number[:-1]))
    spare = float((chain.dur_ns * (1 - 1 / length[inside])).sum())
    scale = spare / float(chain.dur_ns.sum())
    calls = found.call[first]
    where = facts.get(whereabouts).most(calls[calls >= 0])
    at = f" at {where.label}" if where.label else ""
    yield Suspect(
        title=f"{len(first) / len(facts.get(steady)):.4g} chains of elementwise kernels a step, "
        f"{float(length[first].mean()):.2g} kernels each, take {100 * float(chain.dur_ns.sum()) / total:.0f} % of the "
        "kernels' time",
        rows=found.row[first],
        where=where,
        change=Change(scaled=chain.row, device_scale=1 - scale / 2),
        cautious=Change(scaled=chain.row, device_scale=1.0),
        hopeful=Change(scaled=chain.row, device_scale=1 - scale),
        fix="Fuse the chains: torch.compile the module, or use F.rms_norm, F.layer_norm and the like"
        f"{at and f'; most are{at}'}.",
        reason="chains on tensors of like size; that fusing wins half of the memory traffic is assumed",
        confidence="medium",
    )


def _chains(facts: Facts, found: Kernels) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """int64[k] twice: the number of the chain each kernel (by stream and start) is in, and that chain's length."""
    kind = sorts(found)
    small = np.isin(kind, (Sort.ELEMENTWISE, Sort.REDUCTION, Sort.COPY)) & ~_of_optimizers(facts, found)
    size = _sizes(facts, found)
    fresh = np.ones(len(found), np.bool_)
    like = (np.maximum(size[1:], size[:-1]) <= SIMILAR * np.minimum(size[1:], size[:-1])) | (kind[1:] == Sort.REDUCTION)
    same = (found.stream[1:] == found.stream[:-1]) & (found.device[1:] == found.device[:-1])
    same &= found.step[1:] == found.step[:-1]
    fresh[1:] = ~(same & small[1:] & small[:-1] & like & (size[1:] > 0) & (size[:-1] > 0))
    number = np.cumsum(fresh) - 1
    pairs = np.unique(np.stack((number, _names(facts, found))), axis=1)
    several = np.bincount(pairs[0]) >= LEAST  # the same operator again and again is a loop
    return number, np.where(small & several[number], np.bincount(number)[number], 0)


def _of_optimizers(facts: Facts, found: Kernels) -> NDArray[np.bool_]:
    """bool[k]: whether an optimizer launched each kernel."""
    steps = named(facts.trace, Kind.ANNOTATION, lambda name: name.startswith("Optimizer.step#"))
    inside = found.call >= 0
    inside[inside] = facts.get(nesting).below(found.call[inside], steps)
    return inside


def _names(facts: Facts, found: Kernels) -> NDArray[np.int64]:
    """int64[k]: equal numbers for kernels of operators of equal names."""
    return np.where(found.operator >= 0, facts.trace.name[found.operator], -1).astype(np.int64)


def _sizes(facts: Facts, found: Kernels) -> NDArray[np.int64]:
    """int64[k]: elements of the largest input of the operator behind each kernel, 0 where unknown."""
    given = facts.get(inputs)
    codes = np.full(len(found), -1, np.int64)
    launched = found.operator >= 0
    codes[launched] = given.codes(found.operator[launched])
    _, first, same = np.unique(codes, return_index=True, return_inverse=True)
    rows = found.operator[first].tolist()
    largest = [max((elements(shape) for shape in given.dims(row)), default=0) if row >= 0 else 0 for row in rows]
    return np.array([min(value, np.iinfo(np.int64).max // 8) for value in largest], np.int64)[same]


RULE = Rule("elementwise-chain-unfused", Family.KERNEL, check, frozenset({Need.DEVICE, Need.SHAPES}))
