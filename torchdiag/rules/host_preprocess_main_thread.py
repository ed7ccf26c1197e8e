"""The training loop itself works on data on the host, while the device waits.

## What it finds
Decoding, resizing, augmenting, tokenising or drawing between the steps' kernels, outside of the loader: in the loop,
or in the model's own preprocessing.

## Why it is slow
The thread that does it is the one that launches: meanwhile the device has nothing to do.

## How it is detected
On a thread that launches, in steady steps: functions of image, audio, text, table or plotting libraries that launch
nothing; and, between a marked step's batch (or its beginning) and its first launch, a person's functions and operators
on CPU tensors of at least 50 us (those that make a tensor are left to the rules of transfers). Those at one place must
idle the device for at least 2 % of a usual step. What runs inside a loader, between the two copies of a round trip,
or while a checkpoint is written belongs to other rules. The gain is the step replayed without this work.

## When it does not matter
In a first step, or while the device works off a queue, it costs nothing; the rule is silent.

## How to fix it
Before:

```python
for images, targets in loader:
    images = torch.stack([augment(image) for image in images])
```

After:

```python
class Augmented(Dataset):
    def __getitem__(self, index):  # runs in the workers
        image, target = self.images[index]
        return augment(image), target
```

## References
- ultralytics/yolov3#659: utilisation fell to a tenth because anchors were drawn in each step
- dingo-gw/dingo#55: hidden conversions to float64 in transforms
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.batch_stalls import WORTH
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.host_work import host_work
from torchdiag.timeline.facts.hottest import hottest
from torchdiag.timeline.facts.steady import steady


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a place that works on data on the host while devices idle."""
    found, times = facts.get(host_work), facts.get(steady)
    for place in few_places(facts, found.row):
        rows = found.row[place.chosen]
        exposed = found.exposed_ns[place.chosen]
        share = float(exposed.sum()) / times.total_ns
        per_step = np.bincount(times.of(facts.trace.ts_ns[rows]), exposed, minlength=len(times))
        if place.others or np.median(per_step) < WORTH * times.step_ns:
            continue
        most = hottest(facts, rows)
        spent = f"; {most.share:.0%} of it in {most.label}" if most is not None else ""
        yield Suspect(
            title=f"The device idles {share:.0%} of the time while the launching thread works on data{place.at}",
            rows=rows,
            where=place.where,
            change=Change(shortened=rows),
            fix=f"Move the work{place.at} into the dataset, so that the loader's workers do it ahead of time, or do it "
            "on the device in batches; delete what only draws or checks.",
            reason=f"host work that launches nothing{spent}",
            confidence="medium" if np.any(found.early[place.chosen]) else "high",
        )


RULE = Rule("host-preprocess-main-thread", Family.DATA, check, frozenset({Need.DEVICE}))
