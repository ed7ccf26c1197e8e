"""Deterministic mode fills every new tensor.

## What it finds
Programs under `torch.use_deterministic_algorithms(True)`, where every `empty` tensor is filled with NaN or the largest
integer before use.

## Why it is slow
The fill reads nothing and means nothing, but writes every new tensor once more, in a kernel of its own.

## How it is detected
`aten::fill_` as a child of `aten::empty`, `aten::empty_strided`, `aten::empty_like` and the like in every steady step.
The gain replays the step without these fills.

## When it does not matter
Determinism itself is untouched by the fix: only the filling is dropped.

## How to fix it
Before:

```python
torch.use_deterministic_algorithms(True)
```

After:

```python
torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = False
```

## References
- NVIDIA/Megatron-LM#7093: about 15 % of the throughput
- pytorch/pytorch#117081
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named, nesting, operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

LEAST = 5
"""Fills a step from which it is a mode and no accident."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all fills of empty tensors."""
    times, tree, trace = facts.get(steady), facts.get(nesting), facts.trace
    empty = named(
        trace, Kind.OPERATOR, lambda name: name.startswith(("aten::empty", "aten::new_empty", "aten::resize_"))
    )
    fills = tree.children(empty, times.rows(facts, operators(trace, "aten::fill_")))
    if len(fills) < LEAST * len(times) or not times.in_most(trace.ts_ns[fills]):
        return
    activities = facts.partition.activities
    launched = tree.launched_below(fills)
    spent = int((activities.end_ns[launched] - activities.start_ns[launched]).sum())
    on_device = f", {spent / len(times) / 1e6:.3g} ms of kernels" if len(launched) else ""
    yield Suspect(
        title=f"Deterministic mode fills {len(fills) / len(times):.4g} new tensors a step{on_device}",
        rows=fills,
        change=Change(shortened=fills, removed=np.unique(activities.row[launched])),
        fix="Set torch.utils.deterministic.fill_uninitialized_memory = False; determinism does not need the fills.",
        reason="every new tensor is filled where it is made",
    )


RULE = Rule("deterministic-fill", Family.LAUNCH, check)
