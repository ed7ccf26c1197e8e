"""The memory is pinned, but the host waits for the copy all the same.

## What it finds
Copies from pinned memory to the device that are followed by a wait in the same operator: `.to(device)` or `.cuda()`
without `non_blocking=True`.

## Why it is slow
Pinning paid for the right to go on while the copy runs. Without `non_blocking=True` the host stops until the copy,
and everything queued before it on the stream, is done; the device then waits for the next launch.

## How it is detected
A copy named `Pinned -> Device` and a synchronising call inside the operator that made it, in nearly every steady
step. The gain is the step replayed without these waits.

## When it does not matter
From pageable memory `non_blocking=True` overlaps nothing: those copies belong to h2d-pageable. Copies to the host
must not be made non-blocking without an event to wait for before the values are read; this rule never asks for that.
Where the device is busy throughout, the finding is latent.

## How to fix it
Before:

```python
loader = DataLoader(dataset, pin_memory=True)
images = images.cuda()
```

After:

```python
loader = DataLoader(dataset, pin_memory=True)
images = images.cuda(non_blocking=True)
```

## References
- pytorch/pytorch#48065: users cannot tell whether their non-blocking copies take effect
- pytorch/tutorials#2983
"""

from collections.abc import Iterator

from torchdiag.findings.amounts import bytes_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.copy_changes import asynchronous
from torchdiag.timeline.facts.copy_reasons import Reason, copy_reasons
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that waits for copies from pinned memory."""
    accused = facts.get(copy_reasons).of(Reason.PINNED_BLOCKING)
    for place in few_places(facts, accused.copies.call):
        here = accused.part(place.chosen)
        size = here.copies.size_bytes[here.copies.size_bytes >= 0]
        amount = f" ({bytes_text(float(size.mean()))} each)" if len(size) else ""
        yield Suspect(
            title=f"The host waits for a copy from pinned memory{amount} {place.how_often}{place.at}",
            rows=here.copies.row,
            where=place.where,
            change=asynchronous(here),
            fix=f"Pass non_blocking=True to the copy{place.at}: the memory is pinned already.",
            reason="a synchronising call follows a Pinned -> Device copy inside the same operator",
        )


RULE = Rule("h2d-pinned-blocking", Family.TRANSFER, check, frozenset({Need.DEVICE}))
