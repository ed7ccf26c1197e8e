"""Deterministic variants of scatter and index operations dominate.

## What it finds
Programs in deterministic mode in which sorting or serialised kernels of scatter, index and interpolation operators take
much of the time.

## Why it is slow
Without atomics, contributions to one element are sorted first and added in order.

## How it is detected
Deterministic mode is evident (new tensors are filled where they are made) and sorts or `indexing_backward` kernels
under `index_put` (without accumulation), `scatter` or `index_add` take a tenth of the kernels' time. What the other
variant takes is not in the trace, so no gain is given.

## When it does not matter
`index_put` with accumulation sorts in the usual mode as well.

## How to fix it
Before:

```python
torch.use_deterministic_algorithms(True)
```

After:

```python
torch.use_deterministic_algorithms(debugging)  # on only while two runs are to be compared bit by bit
```

## References
- pytorch/pytorch#193317
- pytorch/pytorch#97660
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.rules.deterministic_fill import check as fills_of
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import inputs
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind

SHARE = 0.1
SCATTERING = ("aten::index_put", "aten::_index_put", "aten::scatter", "aten::index_add", "aten::upsample", "aten::put_")


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all sorts and serialised kernels of a program in deterministic mode."""
    if next(iter(fills_of(facts)), None) is None:
        return
    times, tree, found = facts.get(steady), facts.get(nesting), facts.get(kernels).compute()
    rows = times.rows(facts, named(facts.trace, Kind.OPERATOR, lambda name: name.startswith(SCATTERING)))
    rows = rows[[not _sorts_anyway(facts, row) for row in rows.tolist()]] if len(rows) else rows
    below = np.isin(found.activity, tree.launched_below(rows))
    slow = found.part(below & found.named(lambda name: "RadixSort" in name or "indexing_backward" in name))
    share = float(slow.dur_ns.sum()) / max(float(found.dur_ns.sum()), 1.0)
    if share < SHARE:
        return
    yield Suspect(
        title=f"Deterministic sorts and ordered sums take {100 * share:.0f} % of the kernels' time",
        rows=slow.row,
        where=facts.get(whereabouts).most(slow.call[slow.call >= 0]),
        fix="Switch deterministic algorithms on only while comparing runs bit by bit, and compare the step times.",
        reason="what the other kernels would take is not in the trace: profile once without deterministic mode",
        confidence="medium",
        verdict="cannot-tell",
    )


def _sorts_anyway(facts: Facts, row: int) -> bool:
    """Whether an operator is `index_put(self, indices, values, accumulate=True)`."""
    concrete = facts.get(inputs).concrete(row)
    return "index_put" in facts.trace.names[int(facts.trace.name[row])] and concrete[3:4] == ("True",)


RULE = Rule("deterministic-slow-kernels", Family.KERNEL, check, frozenset({Need.DEVICE}))
