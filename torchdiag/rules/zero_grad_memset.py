"""Gradients are filled with zeros rather than dropped.

## What it finds
`optimizer.zero_grad(set_to_none=False)`, or the `zero_grad()` of torch before 2.0.

## Why it is slow
Every gradient is written once to be zero and read again to be added to. Dropped, it costs nothing: the backward pass
puts the new gradient in its place.

## How it is detected
`aten::zero_`, `aten::fill_` or `aten::_foreach_zero_` inside `Optimizer.zero_grad#...` in most steady steps. The gain
replays the step without them; the most also without the additions to gradients in the backward pass.

## When it does not matter
A captured CUDA graph needs gradients at fixed addresses, and gradients accumulated over several backward passes are
added in any case. With few parameters it is little.

## How to fix it
Before:

```python
optimizer.zero_grad(set_to_none=False)
```

After:

```python
optimizer.zero_grad()  # since 2.0 None is what it sets
```

## References
- PyTorch's performance tuning guide: set gradients to None
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.nesting import named, nesting, operators
from torchdiag.timeline.facts.operator_order import operator_order
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

MARK = "Optimizer.zero_grad#"
LEFT = 0.1
"""Setting to None leaves a walk over the parameters."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that fills gradients."""
    trace, tree = facts.trace, facts.get(nesting)
    marks = facts.get(steady).rows(facts, named(trace, Kind.ANNOTATION, lambda name: name.startswith(MARK)))
    fills = operators(trace, "aten::zero_", "aten::fill_", "aten::_foreach_zero_")
    fills = fills[np.isin(fills, facts.get(operator_order).row) & tree.below(fills, marks)]
    around = tree.nearest(fills, tree.mask(marks))
    rows, first = np.unique(around, return_index=True)
    added = operators(trace, "aten::add_", "aten::add")
    grads = named(trace, Kind.OPERATOR, lambda name: name.endswith("torch::autograd::AccumulateGrad"))
    added = facts.get(steady).rows(facts, added[tree.below(added, grads)])
    for place in few_places(facts, fills[first]):
        here = rows[place.chosen]
        mine = fills[np.isin(around, here)]
        gone = facts.partition.activities.row[tree.launched_below(here)]
        more = facts.partition.activities.row[tree.launched_below(added)]
        yield Suspect(
            title=f"zero_grad fills gradients with zeros{place.at}: {len(mine) / len(here):.3g} operators, "
            f"{time_text(float(trace.dur_ns[here].mean()))} on the host",
            rows=here,
            where=place.where,
            change=Change(shortened=here, host_scale=LEFT, removed=gone),
            hopeful=Change(
                shortened=np.concatenate((here, added)), host_scale=LEFT, removed=np.concatenate((gone, more))
            ),
            fix=f"Call zero_grad(set_to_none=True){place.at}: what it does by itself since torch 2.0.",
            reason="operators that fill, inside zero_grad; the most gain takes away the additions in backward too",
        )


RULE = Rule("zero-grad-memset", Family.LAUNCH, check)
