"""Batches are copied to the device from pageable memory.

## What it finds
Large copies to the device, in every step, whose host side is ordinary (pageable) memory.

## Why it is slow
The device cannot read pageable memory by itself: the driver first copies it through a small pinned buffer of its own,
which takes about as long again, and the host thread waits while it does. Meanwhile it launches nothing.

## How it is detected
Copies named `Pageable -> Device` of at least 1 MB in nearly every steady step that no more specific rule accuses. The
gain is the step replayed without these waits and with the copies at the speed of the trace's own pinned copies; where
it has none, twice the speed is assumed, and the least gain keeps the speed as it is.

## When it does not matter
Small copies cost no more from pageable memory than from pinned memory. Machines whose host and device share memory
have nothing to gain. A copy that hides behind the device's work of the step before is reported as latent.

## How to fix it
Before:

```python
loader = DataLoader(dataset, batch_size=64)
images = images.to("cuda")
```

After:

```python
loader = DataLoader(dataset, batch_size=64, pin_memory=True)
images = images.to("cuda", non_blocking=True)
```

Pinning in the loop itself (`x.pin_memory().to(...)`) is no cure: pinning costs as much as the copy that it saves.

## References
- pytorch/tutorials#2983: when pinned memory and non-blocking copies help, and that pinning in the main thread does
not
- microsoft/onnxruntime#20947
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import bytes_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.copies import PINNED, TO_DEVICE, Copies, copies
from torchdiag.timeline.facts.copy_changes import asynchronous
from torchdiag.timeline.facts.copy_reasons import LARGE_BYTES, Reason, copy_reasons
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places

ASSUMED_SCALE = 0.5
"""What is left of the time of a copy once its memory is pinned, where the trace shows no pinned copy."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that copies large pageable tensors in every step."""
    accused = facts.get(copy_reasons).of(Reason.PAGEABLE)
    measured = _pinned_speed(facts.get(copies))
    for place in few_places(facts, accused.copies.call):
        here = accused.part(place.chosen)
        size = float(here.copies.size_bytes.mean())
        scale = ASSUMED_SCALE if measured is None else min(1.0, _speed(here.copies) / measured)
        told = "twice the speed is assumed" if measured is None else "at the speed of the trace's own pinned copies"
        yield Suspect(
            title=f"{bytes_text(size)} are copied from pageable memory {place.how_often}{place.at}",
            rows=here.copies.row,
            where=place.where,
            change=asynchronous(here, scale),
            cautious=asynchronous(here),
            fix=f"Give the DataLoader pin_memory=True and pass non_blocking=True to the copy{place.at}; it takes both.",
            reason=f"the copies say Pageable -> Device; from pinned memory {told}, the least gain leaves it as it is",
        )


def _speed(table: Copies) -> float:
    return float(table.size_bytes.sum() / max(1, int((table.end_ns - table.start_ns).sum())))


def _pinned_speed(table: Copies) -> float | None:
    """Bytes a nanosecond of the large pinned copies to the device; None without any."""
    pinned = table.part(
        np.flatnonzero((table.direction == TO_DEVICE) & (table.memory == PINNED) & (table.size_bytes >= LARGE_BYTES))
    )
    return _speed(pinned) if len(pinned) else None


RULE = Rule("h2d-pageable", Family.TRANSFER, check, frozenset({Need.DEVICE}))
