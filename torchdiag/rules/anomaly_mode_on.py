"""Autograd's anomaly detection is on.

## What it finds
Training with `torch.autograd.set_detect_anomaly(True)`, which is meant for finding a NaN.

## Why it is slow
Every node of the backward pass checks each of its gradients for NaN and reads the answer back, and the forward pass
records a stack for every operator.

## How it is detected
Inside `autograd::engine::evaluate_function: ...`, `aten::isnan`, `aten::any` and a read of the result for most nodes of
the backward pass, in every step. The gain replays the step without these operators and their waits, and without the
keeping of stacks where the recording shows it (with stacks).

## When it does not matter
Nothing else looks like this. Without stacks in the recording, those that the forward pass keeps come on top of the
gain.

## How to fix it
Before:

```python
torch.autograd.set_detect_anomaly(True)
```

After:

```python
# only while looking for a NaN:
with torch.autograd.detect_anomaly(check_nan=True):
    loss.backward()
```

## References
- Lightning-AI/pytorch-lightning#17359: 2.5 times as slow
- stanford-iprl-lab/nerf_shared#10: 6 iterations a second became 9
- icon-lab/SynDiff#43: an epoch of 1.5 h became 36 min
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.blocking import blocking
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named, nesting, operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

NODE = "autograd::engine::evaluate_function: "
CHECKS = ("aten::isnan", "aten::any", "aten::_is_any_true", "aten::is_nonzero", "aten::item", "aten::ne", "aten::eq")
MOST = 0.5


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all checks of a backward pass."""
    times, tree, trace = facts.get(steady), facts.get(nesting), facts.trace
    nodes = times.rows(facts, named(trace, Kind.OPERATOR, lambda name: name.startswith(NODE)))
    nans = tree.descendants(nodes, times.rows(facts, operators(trace, "aten::isnan")))
    if not len(nans) or not times.in_most(trace.ts_ns[nans]):
        return
    owners = np.unique(tree.nearest(nans, tree.mask(nodes)))
    accumulating = named(trace, Kind.OPERATOR, lambda name: name.startswith(f"{NODE}torch::autograd::AccumulateGrad"))
    if len(owners) < MOST * len(np.setdiff1d(nodes, accumulating)):
        return
    outer = tree.mask(nodes)
    checks = times.rows(facts, operators(trace, *CHECKS))
    checks = checks[(tree.parent[checks] >= 0) & outer[np.maximum(tree.parent[checks], 0)]]
    waits, keeping = facts.get(blocking), times.rows(facts, named(trace, Kind.PYTHON, _keeps_stack))
    yield Suspect(
        title=f"Anomaly detection is on: {len(nans) / len(times):.4g} gradients a step are checked for NaN",
        rows=nans,
        change=Change(
            unblocked=waits.part(waits.inside(facts, checks)).calls,
            shortened=np.concatenate((checks, keeping)),
            removed=facts.partition.activities.row[tree.launched_below(checks)],
        ),
        fix="Remove torch.autograd.set_detect_anomaly(True) (and detect_anomaly=True of a trainer); use it only while "
        "looking for a NaN.",
        reason="most nodes of the backward pass check their gradients for NaN",
    )


def _keeps_stack(name: str) -> bool:
    """Whether a function is what writes the stack of a forward operator down."""
    return name.endswith(": format_stack") and "traceback.py(" in name


RULE = Rule("anomaly-mode-on", Family.SYNC, check)
