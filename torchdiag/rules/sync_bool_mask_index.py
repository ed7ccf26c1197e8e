"""A boolean mask selects or assigns elements of a tensor on the device.

## What it finds
`x[mask]`, `x[mask] = values` and `torch.masked_select(x, mask)` with a mask on the device.

## Why it is slow
How many elements the mask selects is the size of the result, which the host must know to allocate it: it waits until
the device has counted them. Several kernels compact the elements besides.

## How it is detected
A waiting call inside `aten::nonzero` inside `aten::index` or `aten::index_put_` (which is how masks are turned into
indices), or inside `aten::masked_select`, at one line in at least 80 % of the steady steps; what a backward pass
indexes is told at the line of its forward operator. The gain is the step replayed without these waits; the kernels
that compact are not counted.

## When it does not matter
Assigning one Python number (`x[mask] = 0`) becomes `aten::masked_fill_` and waits for nothing. Replacing `x[mask]` by
`x[mask.nonzero()]` wins nothing: the same operator runs in both.

## How to fix it
Before:

```python
loss = per_token[labels != -100].mean()
```

After:

```python
mask = (labels != -100).to(per_token.dtype)
loss = (per_token * mask).sum() / mask.sum()
```

## References
- pytorch/pytorch#12461: simple masks synchronise, and `nonzero` is why
- vllm-project/vllm#19578: 112 calls took 1.9 ms of host time, 0.2 ms with `nonzero_static`
- deepmodeling/deepmd-kit#3361: about 3 ms a step
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import operators
from torchdiag.timeline.facts.wait_reasons import Reason
from torchdiag.timeline.facts.waiting_lines import WaitingLine, waiting_lines

ASSIGNMENTS = ("aten::index_put_", "aten::index_put", "aten::_index_put_impl_", "aten::masked_scatter")


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that selects or assigns by a boolean mask."""
    for line in waiting_lines(facts, Reason.MASK):
        assigns = bool(np.all(line.waits.inside(facts, operators(facts.trace, *ASSIGNMENTS))))
        what = "Assigning to" if assigns else "Selecting"
        yield Suspect(
            title=f"{what} elements by a boolean mask makes the host wait {line.often}{line.at}",
            rows=line.waits.row,
            where=line.where,
            change=Change(unblocked=line.waits.calls),
            fix=_fix(line, assigns),
            reason=f"`{line.operator}` needs to know on the host how many elements the mask selects",
        )


def _fix(line: WaitingLine, assigns: bool) -> str:
    if assigns:
        return (
            f"Use `torch.where(mask, values, x)` or `x.masked_fill(mask, number)`{line.at}; if the number n of "
            "selected elements is known, index with `torch.nonzero_static(mask, size=n)`."
        )
    return (
        f"Keep the shape{line.at} and weight by the mask (`(x * mask).sum() / mask.sum()`, `torch.where`); if the "
        "number n of selected elements is known, index with `torch.nonzero_static(mask, size=n)`."
    )


RULE = Rule("sync-bool-mask-index", Family.SYNC, check, frozenset({Need.DEVICE}))
