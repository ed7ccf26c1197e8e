"""The gradient scaler is asked for overflows more often than once a step, or for nothing.

## What it finds
Several `scaler.step(optimizer)` (one an optimizer or a group of parameters), extra calls such as `scaler.get_scale()`,
and a scaler that was kept though the model computes in bfloat16.

## Why it is slow
`scaler.step` must know whether a gradient overflowed before the optimizer may run, so the host waits for the end of the
backward pass. One wait a step is the price of float16; each further one drains the queue again.

## How it is detected
Waits inside `torch/amp/grad_scaler.py`; without stacks, the read that follows
`aten::_amp_foreach_non_finite_check_and_unscale_` and comes right before an optimizer steps, ahead of
`aten::_amp_update_scale_`. Reported where most steps have at least two; or one, if the recorded types show bfloat16 and
no float16 at all. The gain is the step replayed without the waits that are too many.

## When it does not matter
Exactly one read a step with float16 is by design, and the rule is silent.

## How to fix it
Before:

```python
scaler.step(optimizer_d)
scaler.step(optimizer_g)
```

After:

```python
with torch.autocast("cuda", dtype=torch.bfloat16):  # needs no scaler
    ...
optimizer_d.step()
optimizer_g.step()
```

## References
- pytorch/pytorch#80167: each `scaler.step` synchronises, unless the optimizer is fused
- huggingface/accelerate#1714: `get_scale()` before and after each step cost two more waits
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import MOSTLY, steady
from torchdiag.timeline.facts.wait_reasons import Reason, wait_reasons
from torchdiag.timeline.facts.whereabouts import whereabouts


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all reads that are too many."""
    times, waits = facts.get(steady), facts.get(wait_reasons).of(Reason.SCALER).waits
    if not len(waits) or times.whole:
        return
    often = np.bincount(waits.step, minlength=len(times))
    needless = _without_half(facts)
    wanted = 1 if needless else 2
    if np.count_nonzero(often >= wanted) < MOSTLY * len(times):
        return
    extra = np.ones(len(waits), np.bool_)
    if not needless:
        extra[np.unique(waits.step, return_index=True)[1]] = False
    accused = waits.part(extra)
    where = facts.get(whereabouts).most(accused.row)
    mean = len(waits) / len(times)
    at = f" at {where.label}" if where.file else ""
    title = f"The gradient scaler makes the host wait {mean:.3g} times a step{at}"
    yield Suspect(
        title=title + (", for a model without float16" if needless else ", where once is enough"),
        rows=accused.row,
        where=where,
        change=Change(unblocked=accused.calls),
        fix=_fix(needless),
        reason="no operator computes in float16" if needless else "all but one read a step are accused",
    )


def _fix(needless: bool) -> str:
    if needless:
        return "Drop the scaler: bfloat16 has the range of float32, gradients do not underflow."
    return (
        "Give all parameters to one optimizer (as parameter groups) so that one `scaler.step` serves them, build it "
        "with fused=True (it takes the overflow flag on the device), or autocast to bfloat16 and drop the scaler."
    )


def _without_half(facts: Facts) -> bool:
    """Whether the recorded types of operators have bfloat16 and no float16."""
    column = facts.trace.args.input_types
    texts = [facts.trace.texts[code] for code in np.unique(column.values[column.values >= 0]).tolist()]
    return any("BFloat16" in text for text in texts) and not any("c10::Half" in text for text in texts)


RULE = Rule("sync-gradscaler", Family.SYNC, check, frozenset({Need.DEVICE}))
