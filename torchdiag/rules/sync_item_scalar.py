"""The program reads a number from the device in every step.

## What it finds
`loss.item()`, `float(loss)`, `int(count)` or `loss.cpu()` in the step itself: for a running mean, a metric, a schedule.

## Why it is slow
The value does not exist until the device has computed everything queued before it, so the host stops until then. When
it goes on, the queue is empty, and the device idles while Python issues the next operators.

## How it is detected
`aten::item` (or `aten::_local_scalar_dense`), or a copy of at most 16 bytes to the host, with a call inside that waits
for the device, at one line in at least 80 % of the steady steps. Waits that have a more telling cause (a branch, a
mask, a gradient scaler, printing, ...) belong to the rule of that cause. The gain is the step replayed without these
waits: the time of the call itself is mostly the device's work, seen from the host.

## When it does not matter
On a tensor that lives on the CPU nothing waits, and the rule says nothing; nor does it where only every N-th step
reads. Where the host waits for something else right afterwards, or the device is busy throughout, the gain is about
nothing and the finding is latent.

## How to fix it
Before:

```python
total += loss.item()
```

After:

```python
total += loss.detach()  # stays on the device
if step % 100 == 0:
    print(total.item() / 100)
```

## References
- meta-pytorch/torchtune#522: 40 to 50 ms a step spent in reading the loss, which was then read on logging steps only
- huggingface/diffusers#10642: a read in a condition of a denoising loop
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named
from torchdiag.timeline.facts.wait_reasons import Reason
from torchdiag.timeline.facts.waiting_lines import waiting_lines
from torchdiag.trace.vocabulary import Kind

GENERAL = (
    "Add the value up on the device (`total += value.detach()`) and read it every N steps{at}; or copy it into a "
    "pinned buffer with non_blocking=True, record a torch.cuda.Event, and read it one step later."
)
OPTIMIZER = (
    "The optimizer's step counters live on the device{at}, as after loading a state with map_location: build it with "
    "fused=True, or move each state['step'] to the CPU after load_state_dict."
)


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that reads a number from the device in every step."""
    steps = named(facts.trace, Kind.ANNOTATION, lambda name: name.startswith("Optimizer.step#"))
    for line in waiting_lines(facts, Reason.SCALAR):
        by_optimizer = bool(np.all(line.waits.inside(facts, steps)))
        yield Suspect(
            title=f"Reading a number from the device makes the host wait {line.often}{line.at}",
            rows=line.waits.row,
            where=line.where,
            change=Change(unblocked=line.waits.calls),
            fix=(OPTIMIZER if by_optimizer else GENERAL).format(at=line.at),
            reason="the number is copied to the host, which waits for it",
        )


RULE = Rule("sync-item-scalar", Family.SYNC, check, frozenset({Need.DEVICE}))
