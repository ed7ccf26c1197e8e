"""The multi-tensor optimizer itself keeps the host busy while the device waits.

## What it finds
A `foreach` optimizer whose step takes the host several times as long as the device.

## Why it is slow
Each of about a dozen `_foreach_` calls walks over all parameters to sort them by device and type, allocates its results
and launches a few kernels. With a thousand small parameters the walking costs more than the work.

## How it is detected
`_foreach_` operators and no `_fused_` one inside `Optimizer.step#...`, whose host time is at least three times that of
the kernels it launches, in most steady steps. The gain replays the step with what reports of fused optimizers left of
the host's time: 35 % (60 % at the least gain, 15 % at the most).

## When it does not matter
Where the device still works on what was queued before, nothing waits for the optimizer: replayed, that gives no gain.
Under FSDP2 each operator on a DTensor costs Python as well, and a fused one is launched as late.

## How to fix it
Before:

```python
optimizer = torch.optim.AdamW(model.parameters())
```

After:

```python
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
```

Or compile it: `step = torch.compile(optimizer.step)`.

## References
- microsoft/dion#63: 138 ms on the host for 13 ms on the device, 43 ms with a fused optimizer
- deepmodeling/deepmd-kit#4463: 22 ms became 8, in a step of 922
- pytorch/pytorch#134191
- pytorch/pytorch#101291: a fused optimizer that was launched late won nothing
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.optimizer_runs import optimizer_runs

HOST_TO_DEVICE = 3.0
LEFT = 0.35
MOST_LEFT = 0.6
LEAST_LEFT = 0.15
FUSED = frozenset({"Adam", "AdamW", "SGD", "Adagrad"})


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect an optimizer."""
    found, trace = facts.get(optimizer_runs), facts.trace
    if not len(found):
        return
    foreach, fused = found.counted("aten::_foreach_"), found.counted("aten::_fused_")
    found = found.part(np.flatnonzero((foreach > 0) & (fused == 0)))
    activities = facts.partition.activities
    for place in few_places(facts, found.first):
        here = found.part(place.chosen)
        launched = here.launched
        host = int(trace.dur_ns[here.row].sum())
        device = int((activities.end_ns[launched] - activities.start_ns[launched]).sum())
        if not len(launched) or host < HOST_TO_DEVICE * device:
            continue
        name = here.name
        fix = f"Pass fused=True to {name}" if name in FUSED else f"Compile it: torch.compile({name}.step)"
        yield Suspect(
            title=f"{name}.step (foreach) takes the host {time_text(host / len(here))} for "
            f"{time_text(device / len(here))} on the device{place.at}",
            rows=here.row,
            where=place.where,
            change=Change(shortened=here.row, host_scale=LEFT),
            cautious=Change(shortened=here.row, host_scale=MOST_LEFT),
            hopeful=Change(shortened=here.row, host_scale=LEAST_LEFT),
            fix=f"{fix}, then compare: it helps where the device waits for the optimizer.",
            reason="foreach operators that take the host longer than the device; the gain assumes that a fused one "
            "leaves 35 % of the host's time, as was reported (60 % at the least gain, 15 % at the most)",
            confidence="medium",
        )


RULE = Rule("optimizer-foreach-host-bound", Family.LAUNCH, check, frozenset({Need.DEVICE}))
