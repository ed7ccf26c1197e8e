"""A kernel with much of the time uses little of the device.

## What it finds
Kernels with a twentieth of the time or more that start fewer blocks than the device has multiprocessors.

## Why it is slow
Multiprocessors without a block do nothing.

## How it is detected
`blocks per SM` below 1 in kernels that share at least 5 % of the kernels' time.

## When it does not matter
Kernels on tensor cores, persistent ones and collectives use few blocks on purpose: occupancy is not efficiency. So no
gain is given.

## How to fix it
Before:

```python
y = x.sum(dim=1)  # one row
```

After:

```python
y = x.view(64, -1).sum(dim=1).sum()  # a larger batch, a split reduction, or streams that run beside it
```

## References
- pytorch/pytorch#121857
- NVIDIA/nccl#491: a collective of one block
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.kernel_names import Sort, sorts
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

SHARE, MOST = 0.05, 3
TENSOR_CORES = (Sort.GEMM, Sort.CONVOLUTION, Sort.ATTENTION)


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for each of the kernels (by name) that use the device least."""
    found, trace = facts.get(kernels).compute(), facts.trace
    blocks = trace.args.blocks_per_sm.at(found.row, -1.0)
    small = found.part((blocks >= 0) & (blocks < 1) & ~np.isin(sorts(found), TENSOR_CORES))
    total = max(float(found.dur_ns.sum()), 1.0)
    code = trace.name[small.row]
    ranked = sorted(((float(small.dur_ns[code == name].sum()), name) for name in set(code.tolist())), reverse=True)
    for spent, name in ranked[:MOST]:
        if spent < SHARE * total:
            return
        mine = small.part(code == name)
        yield Suspect(
            title=f"{trace.names[name][:80]} takes {100 * spent / total:.0f} % of the kernels' time with fewer blocks "
            "than the device has multiprocessors",
            rows=mine.row,
            where=facts.get(whereabouts).most(mine.call[mine.call >= 0]),
            fix=f"Give it more to do at once (a larger batch, a reduction in two stages), or run it beside other work "
            f"({len(mine) / len(facts.get(steady)):.3g} of them a step).",
            reason="few blocks are a hint, no proof: compare with a larger batch",
            confidence="low",
            verdict="cannot-tell",
        )


RULE = Rule("low-occupancy", Family.KERNEL, check, frozenset({Need.DEVICE}))
