"""Tensors are copied only to lie differently in memory.

## What it finds
Lines that call `contiguous`, `clone`, `cat` or `reshape` so that much of the device's time goes into copies of tensors
to other places on the same device.

## Why it is slow
Each such copy reads and writes the whole tensor and computes nothing.

## How it is detected
Kernels launched inside `aten::contiguous`, `aten::clone`, `aten::reshape` or `aten::cat`, grouped by line, with a
twentieth of the kernels' time or more together. The gain replays the step with half of that time; between none and all
of it.

## When it does not matter
Where the next kernel needs the other layout, one copy may replace many slow reads.

## How to fix it
Before:

```python
q = self.q(x).view(b, t, h, d).permute(0, 2, 1, 3).contiguous()
```

After:

```python
q = self.q(x).view(b, t, h, d).transpose(1, 2)  # scaled_dot_product_attention takes strides
```

A tensor that is built by `torch.cat` in a loop is copied once in every turn: collect the parts and join them once.

## References
- NVIDIA/cudnn-frontend#609: a checklist of such copies
- vllm-project/vllm-omni#7881: a filter of stride 0 copied on every call
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.kernel_names import Sort, sorts
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.nesting import nesting, operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

SHARE, OWN_SHARE = 0.05, 0.02
MOST = 3
COPYING = ("aten::contiguous", "aten::reshape", "aten::flatten", "aten::cat")


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for each of the lines that copy most."""
    tree, times, found = facts.get(nesting), facts.get(steady), facts.get(kernels).compute()
    total = max(float(found.dur_ns.sum()), 1.0)
    copying = found.part((sorts(found) == Sort.COPY) & (found.call >= 0))
    tops = tree.tops(times.rows(facts, operators(facts.trace, *COPYING)))
    owner = tree.nearest(copying.call, tree.mask(tops))
    copying, owner = copying.part(owner >= 0), owner[owner >= 0]
    if float(copying.dur_ns.sum()) < SHARE * total:
        return
    places = facts.get(whereabouts).grouped(np.unique(owner))
    shares = [float(copying.dur_ns[np.isin(owner, rows)].sum()) / total for _, rows in places]
    for share, (where, rows) in sorted(zip(shares, places, strict=True), key=lambda item: -item[0])[:MOST]:
        mine = copying.row[np.isin(owner, rows)]
        if share < OWN_SHARE:
            return
        at = f" at {where.label}" if where.label else ""
        yield Suspect(
            title=f"{len(rows) / len(times):.3g} tensors a step are copied{at} only to lie differently in memory, "
            f"{100 * share:.0f} % of the kernels' time",
            rows=rows,
            where=where,
            change=Change(scaled=mine, device_scale=0.5),
            cautious=Change(scaled=mine, device_scale=1.0),
            hopeful=Change(removed=mine),
            fix=f"Look whether the copy{at} is needed: choose the layout where the tensor is made (view, unflatten, "
            "transpose without contiguous), or let torch.compile fuse it.",
            reason="kernels that only copy; that half of their time can go is assumed",
            confidence="low",
        )


RULE = Rule("contiguous-copies", Family.KERNEL, check, frozenset({Need.DEVICE}))
