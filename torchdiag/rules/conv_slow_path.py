"""A convolution has no fast kernel.

## What it finds
Convolutions (grouped or depthwise in half precision, three-dimensional, oddly dilated) that run on PyTorch's own slow
path, or without tensor cores although their input is in half precision.

## Why it is slow
The library has no fast algorithm for that combination of sizes, groups and precision, and a general one steps in.

## How it is detected
Kernels of `aten::_slow_conv2d_forward` and the like, or under convolutions whose inputs are in half precision those
without tensor cores (`conv_depthwise2d`, `implicit_convolve_sgemm`, `scudnn`), with 5 % of the kernels' time or more.

## When it does not matter
A small share. What another algorithm would take is not in the trace, so no gain is given: try and compare.

## How to fix it
Before:

```python
y = F.conv2d(x.half(), w.half(), groups=channels)
```

After:

```python
x = x.to(memory_format=torch.channels_last)
y = F.conv2d(x, w, groups=channels)  # or this layer in float32, or channels padded to a multiple of 8
```

## References
- NVIDIA/apex#712: a grouped convolution 15 times as slow in half precision
- pytorch/pytorch#57115
- pytorch/pytorch#35603
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import inputs
from torchdiag.timeline.facts.kernel_names import Arithmetic, Sort, arithmetic, sorts
from torchdiag.timeline.facts.kernels import Kernels, kernels
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind

SHARE = 0.05
HALF = ("c10::Half", "c10::BFloat16")
SLOW = ("aten::_slow_conv", "aten::slow_conv")


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all convolutions on a slow path."""
    found = facts.get(kernels).compute()
    own_path = named(facts.trace, Kind.OPERATOR, lambda name: name.startswith(SLOW))
    own = np.isin(found.activity, facts.get(nesting).launched_below(own_path))
    full = (sorts(found) == Sort.CONVOLUTION) & (arithmetic(found) == Arithmetic.FP32)
    full = (full | found.named(lambda name: "conv_depthwise2d" in name)) & (found.operator >= 0)
    full[full] = _half(facts, found.part(full))
    slow = found.part((own | full) & (found.call >= 0))
    share = float(slow.dur_ns.sum()) / max(float(found.dur_ns.sum()), 1.0)
    if share < SHARE:
        return
    where = facts.get(whereabouts).most(slow.call)
    at = f" at {where.label}" if where.label else ""
    yield Suspect(
        title=f"Convolutions{at} run on a slow path, {100 * share:.0f} % of the kernels' time in "
        f"{len(slow) / len(facts.get(steady)):.3g} kernels a step",
        rows=slow.row,
        where=where,
        fix=f"Try channels_last, another precision for this layer{at}, or channels padded to a multiple of 8.",
        reason="what a faster algorithm would take is not in the trace: profile one change after the other",
        confidence="medium",
        verdict="cannot-tell",
    )


def _half(facts: Facts, found: Kernels) -> NDArray[np.bool_]:
    """bool[k]: whether the operator behind each kernel takes a tensor in half precision."""
    given = facts.get(inputs)
    known = {row: any(kind in HALF for kind in given.types(row)[:2]) for row in set(found.operator.tolist())}
    return np.array([known[row] for row in found.operator.tolist()], np.bool_)


RULE = Rule("conv-slow-path", Family.KERNEL, check, frozenset({Need.DEVICE, Need.SHAPES}))
