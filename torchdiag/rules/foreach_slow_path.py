"""A multi-tensor operator goes through its tensors one by one.

## What it finds
`torch._foreach_...` on a device that falls back to one operator for each tensor.

## Why it is slow
The fast path wants all tensors of one type, on one device, dense and laid out alike. A single list that is not makes
every tensor a launch of its own again, as if there were no multi-tensor operator.

## How it is detected
`aten::_foreach_X` that calls `aten::X` at least 8 times, each with a launch, in most steady steps. The gain replays the
step with one operator's cost and the kernels' work in their place; the least gain leaves the time of the kernels.

## When it does not matter
On a CPU it is always so, and nothing is reported. A few tensors lose little.

## How to fix it
Before:

```python
torch._foreach_add_(weights_in_float, gradients_in_half)
```

After:

```python
torch._foreach_add_(weights_in_float, [gradient.float() for gradient in gradients_in_half])
```

Let parameters and gradients have one type and one memory format; keep step counters on the device (`capturable=True`)
or on the host, not on both.

## References
- pytorch/pytorch#117872: which lists take the fast path
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.call_costs import call_cost_ns, merged
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

FOREACH = "aten::_foreach_"
FEWEST = 8


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that calls one."""
    trace, tree = facts.trace, facts.get(nesting)
    tops = facts.get(steady).rows(facts, named(trace, Kind.OPERATOR, lambda name: name.startswith(FOREACH)))
    launches = facts.partition.activities.launch
    single = named(trace, Kind.OPERATOR, lambda name: name.startswith("aten::") and not name.startswith(FOREACH))
    single = single[np.isin(tree.parent[single], tops)]
    inside = tree.nearest(launches[launches >= 0], tree.mask(single))
    single = np.unique(inside[inside >= 0])
    same = [_single_of(trace.names[parent]) == trace.names[name].rstrip("_") for parent, name in zip(
        trace.name[tree.parent[single]].tolist(), trace.name[single].tolist(), strict=True
    )]  # fmt: skip
    parent = tree.parent[single[np.array(same, np.bool_)]]
    slow, often = np.unique(parent, return_counts=True)
    slow, often = slow[often >= FEWEST], often[often >= FEWEST]
    for place in few_places(facts, slow):
        here, tensors = slow[place.chosen], int(often[place.chosen].sum())
        launched = facts.partition.activities.row[tree.launched_below(here)]
        total = max(int(trace.dur_ns[here].sum()), 1)
        scale = min(facts.get(call_cost_ns) * len(here) / total, 1.0)
        name = trace.names[int(trace.name[here[0]])].removeprefix("aten::")
        yield Suspect(
            title=f"{name} goes through its {tensors / len(here):.3g} tensors one by one, {place.how_often}{place.at}",
            rows=here,
            where=place.where,
            change=merged(facts, Change(shortened=here, host_scale=scale), launched, len(here)),
            cautious=Change(shortened=here, host_scale=scale),
            fix="Give all tensors of the list one type, device and memory format"
            f"{place.at}: compare those of parameters, gradients and optimizer state.",
            reason="single operators with launches inside the multi-tensor one; the least gain leaves their kernels",
        )


def _single_of(name: str) -> str:
    """`aten::mul` for `aten::_foreach_mul_`."""
    return "aten::" + name.removeprefix(FOREACH).rstrip("_")


RULE = Rule("foreach-slow-path", Family.LAUNCH, check, frozenset({Need.DEVICE}))
