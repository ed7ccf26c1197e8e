"""Many small tensors are copied to the device one by one.

## What it finds
More than 20 copies a step of less than 64 kB each: the keys of a batch, the targets of its samples.

## Why it is slow
A copy of a few kB takes the device two microseconds and the host ten or more, and from pageable memory the host waits
each time. The time is spent on the number of copies, not on their bytes.

## How it is detected
More than 20 copies to the device of less than 64 kB, not accused for anything more specific, in most steady steps.
The gain is the step replayed without the waits and with the operators of all of these copies taking the time of one.

## When it does not matter
Sharded embedding tables need their indices on several devices: count those of one device only. Where the device is
busy throughout, fewer waits win nothing: such findings are latent, and say so.

## How to fix it
Before:

```python
targets = [{key: value.to(device) for key, value in target.items()} for target in targets]
```

After:

```python
flat = torch.cat([target["boxes"] for target in targets]).pin_memory().to(device, non_blocking=True)
boxes = flat.split([len(target["boxes"]) for target in targets])  # views on the device
```

Do the concatenation and the pinning in the loader's `collate_fn` and `pin_memory=True`.

## References
- mindee/doctr#2141: about 200 waits a step in a loss that was called 52 times
- roboflow/rf-detr#1492: 164 waits a step became 15, without a claim of a gain
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import bytes_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.copy_changes import waits
from torchdiag.timeline.facts.copy_reasons import Reason, copy_reasons
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.steady import steady


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that copies small tensors; all lines together are many."""
    accused, times = facts.get(copy_reasons).of(Reason.MANY_SMALL), facts.get(steady)
    if not len(accused):
        return
    together = len(accused) / len(times)
    for place in few_places(facts, accused.copies.call, in_most=False):
        here = accused.part(place.chosen)
        size = bytes_text(float(np.median(here.copies.size_bytes)))
        yield Suspect(
            title=f"{place.often:.3g} small tensors (median {size}) are copied to the device one by one in a step"
            f"{place.at}",
            rows=here.copies.row,
            where=place.where,
            change=Change(
                unblocked=waits(here.copies),
                shortened=here.top[here.top >= 0],
                host_scale=min(1.0, 1 / together),
            ),
            fix=f"Concatenate the tensors copied{place.at} into one pinned buffer in the collate function, copy it "
            "once with non_blocking=True, and split it into views on the device.",
            reason=f"{together:.3g} copies of less than 64 kB in a step, assumed to become one",
        )


RULE = Rule("h2d-many-small", Family.TRANSFER, check, frozenset({Need.DEVICE}))
