"""Tensors are made on the host and then moved, though the device could make them.

## What it finds
`torch.randn(...).to("cuda")`, `torch.zeros(...).cuda()`, `torch.arange(...).to(device)` inside the step.

## Why it is slow
One host thread fills what thousands of device threads fill in microseconds; the copy follows, and from pageable
memory the host waits for it.

## How it is detected
A factory (`aten::randn`, `rand`, `randint`, `randperm`, `zeros`, `ones`, `full`, `arange`, `eye`, `linspace`, or a
random fill such as `normal_`) that launches nothing, and at most three operators later on the same thread a copy to
the device of as many elements, in most steady steps. The gain is the step replayed without factory, copy and wait;
the least gain keeps the operator of the copy, in place of the launch that fills the tensor on the device.

## When it does not matter
Programs that must draw the same numbers on every device need the host's generator: then draw them in the data loader,
or ahead of time. Micro-benchmarks of this change overstate it, where they time the launch and not the work.

## How to fix it
Before:

```python
noise = torch.randn(latents.shape).to(latents.device)
```

After:

```python
noise = torch.randn(latents.shape, device=latents.device)
```

## References
- pytorch/vision#8500: grids made on the host were a quarter of a forward pass
- ShichenLiu/SoftRas#50
- torchsynth/torchsynth#76
- open-mmlab/mmsegmentation#3231: a factor of 2000 that timed a launch only
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import bytes_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.copy_changes import waits, without
from torchdiag.timeline.facts.copy_reasons import Reason, copy_reasons
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.operator_order import operator_order


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that moves what a factory made."""
    accused = facts.get(copy_reasons).of(Reason.CREATED)
    for place in few_places(facts, accused.copies.call):
        here = accused.part(place.chosen)
        factories = np.unique(here.factory)
        name = facts.get(operator_order).name(int(factories[0])).removeprefix("aten::")
        size = here.copies.size_bytes[here.copies.size_bytes >= 0]
        amount = f" ({bytes_text(float(size.mean()))})" if len(size) else ""
        yield Suspect(
            title=f"A tensor{amount} is made on the host by {name} and moved to the device {place.how_often}{place.at}",
            rows=here.copies.row,
            where=place.where,
            change=without(here, factories),
            cautious=Change(unblocked=waits(here.copies), shortened=factories, removed=here.copies.row),
            fix=f"Pass device= to {name}{place.at} and drop the copy; if the host's random numbers are needed, draw "
            "them in the data loader.",
            reason="the operators before the copy made as many elements without launching anything; the least gain "
            "leaves the time of the copy's operator to the launch that takes its place",
        )


RULE = Rule("h2d-create-then-move", Family.TRANSFER, check, frozenset({Need.DEVICE, Need.SHAPES}))
