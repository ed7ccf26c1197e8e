"""A large embedding gets a dense gradient, of which nearly all is zero.

## What it finds
`nn.Embedding` tables so large that zeroing their gradient, and an optimizer that walks over all rows, take a noticeable
part of the step.

## Why it is slow
A batch reads some thousand rows; a dense gradient has all of them, and the optimizer reads and writes each.

## How it is detected
`aten::embedding_dense_backward` whose gradient has a million elements or more and ten times as many rows as were
looked up, with 5 % of the kernels' time together. The gain replays the step without nine tenths of it.

## When it does not matter
Small vocabularies. The sort inside rarely takes more than 2 %.

## How to fix it
Before:

```python
table = nn.Embedding(10_000_000, 64)
optimizer = torch.optim.Adam(table.parameters())
```

After:

```python
table = nn.Embedding(10_000_000, 64, sparse=True)
optimizer = torch.optim.SparseAdam(table.parameters())
```

## References
- pytorch/pytorch#30711
- meta-pytorch/torchrec#4703: 345 ms became 322 by not computing a gradient that nobody read
"""

import re
from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import elements, inputs
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.nesting import nesting, operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

SHARE, LARGE, SPARSE = 0.05, 1_000_000, 10
LEFT = 0.1
ROWS = re.compile(r"[0-9]{1,18}")
"""A number of rows."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all large, nearly empty gradients."""
    times, tree, found = facts.get(steady), facts.get(nesting), facts.get(kernels)
    rows = times.rows(facts, operators(facts.trace, "aten::embedding_dense_backward"))
    rows = np.array([row for row in rows.tolist() if _nearly_empty(facts, row)], np.int64)
    slow = found.part(np.isin(found.activity, tree.launched_below(rows)))
    share = float(slow.dur_ns.sum()) / max(float(found.compute().dur_ns.sum()), 1.0)
    if share < SHARE:
        return
    where = facts.get(whereabouts).most(rows)
    at = f" at {where.label}" if where.label else ""
    yield Suspect(
        title=f"Dense gradients of large embeddings{at} take {100 * share:.0f} % of the kernels' time",
        rows=rows,
        where=where,
        change=Change(scaled=slow.row, device_scale=LEFT),
        cautious=Change(scaled=slow.row, device_scale=0.5),
        fix=f"Make the embedding{at} sparse=True with SparseAdam (or a library of sharded tables), so that only rows "
        "that were read are updated.",
        reason="the gradient has far more rows than were looked up; the optimizer's part comes on top",
        confidence="medium",
    )


def _nearly_empty(facts: Facts, row: int) -> bool:
    """Whether the gradient has far more rows than were read: (gradient of the output, indices, number of rows, ...)."""
    given = facts.get(inputs)
    dims, concrete = given.dims(row), given.concrete(row)
    if len(dims) < 3 or not dims[0] or len(concrete) < 3 or not ROWS.fullmatch(concrete[2]):
        return False
    table = int(concrete[2])
    return table * dims[0][-1] >= LARGE and table >= SPARSE * elements(dims[1])


RULE = Rule("embedding-grad-dense", Family.KERNEL, check, frozenset({Need.DEVICE, Need.SHAPES}))
