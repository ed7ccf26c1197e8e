"""The optimizer updates one parameter after the other.

## What it finds
An `optimizer.step()` that calls its ten or so operators for each parameter by itself.

## Why it is slow
A model of 500 tensors makes 6000 operators a step, each a few microseconds of host time for a kernel that is shorter
than that. The device starves while the optimizer walks.

## How it is detected
Inside `Optimizer.step#...` of most steady steps `aten::addcdiv_`, `lerp_`, `add_`, `mul_` or the like for at least ten
tensors (32 without a device) and no `_foreach_` or `_fused_` operator, nor a multi-tensor kernel. The gain replays the
step with the time that a fused implementation leaves: 4 us a parameter to collect them, a launch for each 30, and the
work itself. The least gain leaves the time of the kernels as it is.

## When it does not matter
A few large parameters: their kernels take longer than the calls. Where the device is behind, the finding is latent. A
closure that computes the loss inside `step` is left out. On a CPU `foreach=True` goes through the tensors one by one as
well; there only `fused=True` helps.

## How to fix it
Before:

```python
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
```

After:

```python
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
```

Custom optimizers: `torch._foreach_mul_(buffers, beta)` does for a list what the loop does for each.

## References
- pytorch/pytorch#43507: the plan for multi-tensor optimizers, and why
- PyTorch's performance tuning guide: fused optimizers
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.call_costs import call_cost_ns, merged, work_share
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.optimizer_runs import OptimizerRuns, optimizer_runs

FEWEST = 10
FEWEST_ON_CPU = 32
PARAMETER_NS = 4_000
STEP_NS = 40_000
"""What fused optimizers of torch 2.14 take on the host: a step, and for each parameter."""
A_LAUNCH = 30
FUSED_ON_CPU = frozenset({"Adam", "AdamW", "SGD", "Adagrad"})
FUSED = FUSED_ON_CPU
FOREACH = frozenset(
    {"Adadelta", "Adafactor", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "Muon"}
)  # fmt: skip


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect an optimizer that loops."""
    found, device = facts.get(optimizer_runs), bool(facts.partition.devices)
    if not len(found):
        return
    batched = found.counted("aten::_foreach_", "aten::_fused_", "aten::_multi_tensor")
    looping = (batched == 0) & ~found.multi_tensor & (found.parameters >= (FEWEST if device else FEWEST_ON_CPU))
    found = found.part(np.flatnonzero(looping))
    for place in few_places(facts, found.first):
        here = found.part(place.chosen)
        if not device and here.name not in FUSED_ON_CPU:
            continue
        often = len(here.top) / len(here)
        known = here.name in FUSED | FOREACH
        span = float(facts.trace.dur_ns[here.row].mean())
        yield Suspect(
            title=f"{here.name}.step updates about {int(here.parameters.max())} parameters one by one{place.at}: "
            f"{often:.4g} operators, {time_text(span)}",
            rows=here.row,
            where=place.where,
            change=_fused(facts, here, kernels=True),
            cautious=_fused(facts, here, kernels=False),
            hopeful=_fused(facts, here, kernels=True, work=0.0),
            fix=_fix(here.name, device),
            reason="operators parameter by parameter, no multi-tensor one; the gain assumes 4 us a parameter and one "
            "launch for 30 of them, the least gain leaves the kernels' time, the most none of the host's work",
            confidence="high" if known else "medium",
        )


def _fused(facts: Facts, here: OptimizerRuns, *, kernels: bool, work: float = 1.0) -> Change:
    """The step of a fused implementation."""
    trace = facts.trace
    number = float(here.parameters.sum())
    total = max(float(trace.dur_ns[here.row].sum()), 1.0)
    left = number * PARAMETER_NS + (number / A_LAUNCH + len(here)) * facts.get(call_cost_ns) + len(here) * STEP_NS
    work *= work_share(facts, here.top) * float(trace.dur_ns[here.top].sum())
    launched = facts.partition.activities.row[here.launched]
    host = Change(shortened=here.row, host_scale=min((left + work) / total, 1.0))
    return merged(facts, host, launched, number / A_LAUNCH + len(here)) if kernels else host


def _fix(name: str, device: bool) -> str:
    if name in FUSED:
        return f"Pass fused=True to {name}" + (" (or foreach=True)." if device else " (torch 2.4 or later).")
    if name in FOREACH:
        return f"Pass foreach=True to {name}."
    return f"Let {name} update lists of parameters with torch._foreach_mul_, _foreach_addcdiv_ and the like."


RULE = Rule("optimizer-for-loop", Family.LAUNCH, check)
