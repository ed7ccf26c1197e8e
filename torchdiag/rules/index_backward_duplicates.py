"""The gradient of an advanced index adds up many equal indices one after the other.

## What it finds
Backward passes of `x[index]` that take far longer than the forward passes, because the same rows were taken many times.

## Why it is slow
Contributions to one row are sorted and added in order. With many equal indices most of the GPU waits for one block.

## How it is detected
`aten::_index_put_impl_` inside `IndexBackward0` with kernels called `indexing_backward` that take at least ten times as
long as the forward `aten::index` and 2 % of the kernels' time. The gain replays the step with these kernels five times
as fast, between twice and ten times.

## When it does not matter
A sort alone is cheap. The first use of a kernel may look slow once.

## How to fix it
Before:

```python
out = table[index]  # index holds few distinct values
```

After:

```python
out = F.embedding(index, table)  # or table.index_select(0, index), or index_add in the other direction
```

## References
- pytorch/pytorch#41162: training about twice as slow
- pytorch/pytorch#99441
- pytorch/pytorch#5159
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.nesting import named, nesting, operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind

RATIO, SHARE, FASTER = 10.0, 0.02, 5.0
NODE = "autograd::engine::evaluate_function: "


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all slow gradients of indexing."""
    times, tree, found = facts.get(steady), facts.get(nesting), facts.get(kernels).compute()
    nodes = named(facts.trace, Kind.OPERATOR, lambda name: name.removeprefix(NODE).startswith("IndexBackward"))
    rows = tree.descendants(nodes, times.rows(facts, operators(facts.trace, "aten::_index_put_impl_")))
    slow = found.part(
        np.isin(found.activity, tree.launched_below(rows)) & found.named(lambda name: "indexing_backward" in name)
    )
    forward = tree.launched_below(times.rows(facts, operators(facts.trace, "aten::index")))
    forward_ns = float(found.dur_ns[np.isin(found.activity, forward)].sum())
    slow_ns = float(slow.dur_ns.sum())
    if slow_ns < SHARE * float(found.dur_ns.sum()) or slow_ns < RATIO * forward_ns or not len(slow):
        return
    owners = np.unique(tree.nearest(slow.call[slow.call >= 0], tree.mask(rows)))
    where = facts.get(whereabouts).most(owners)
    at = f" at {where.label}" if where.label else ""
    yield Suspect(
        title=f"The gradient of indexing{at} takes {slow_ns / len(times) / 1e6:.3g} ms a step, "
        f"{100 * slow_ns / float(found.dur_ns.sum()):.0f} % of the kernels' time",
        rows=owners,
        where=where,
        change=Change(scaled=slow.row, device_scale=1 / FASTER),
        cautious=Change(scaled=slow.row, device_scale=0.5),
        hopeful=Change(scaled=slow.row, device_scale=0.1),
        fix=f"Take rows{at} with F.embedding or index_select, or multiply by a one-hot matrix for a small table: "
        "their gradients add equal indices side by side.",
        reason=f"the backward kernel takes far longer than the forward one; {FASTER:g} times as fast is assumed",
        confidence="medium",
    )


RULE = Rule("index-backward-duplicates", Family.KERNEL, check, frozenset({Need.DEVICE}))
