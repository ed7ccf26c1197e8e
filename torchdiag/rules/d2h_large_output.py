"""Whole outputs are sent to the host in every step.

## What it finds
Copies of at least 1 MB from the device to the host in each step: logits, features or cost matrices that go to NumPy
or into a list.

## Why it is slow
The link to the host is ten to a hundred times slower than the device's own memory, and the host waits for the copy to
end. Usually it then reduces the data to a few numbers, which the device could have done.

## How it is detected
A copy from the device of at least 1 MB, not inside a function that writes a checkpoint and not of a module that is
moved to the host, in most steady steps. The gain is the step replayed without these copies; the least gain keeps them
and only lets the host go on meanwhile, which is all that is expected where nothing is trained.

## When it does not matter
A server that must return the data has to copy it: then only the wait can go, and not even that where the copy ends
the only step that was recorded. Outputs copied while the device has other work show up as latent.

## How to fix it
Before:

```python
predictions.append(model(batch).cpu())
accuracy = (torch.cat(predictions).argmax(-1) == labels).float().mean()
```

After:

```python
hits += (model(batch).argmax(-1) == labels).sum()  # on the device; read once at the end
```

If the data itself is needed: `buffer.copy_(output, non_blocking=True)` into pinned memory, record a
`torch.cuda.Event`, and wait for it before the values are read.

## References
- roboflow/rf-detr#1281: a full cost matrix went to the host where its diagonal blocks were enough
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.amounts import bytes_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.copy_changes import asynchronous, waits
from torchdiag.timeline.facts.copy_reasons import CopyReasons, Reason, copy_reasons
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.training import training


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that copies large tensors to the host."""
    accused = facts.get(copy_reasons).of(Reason.LARGE_OUTPUT)
    accused = accused.part(~_answers(facts, accused))
    learns = facts.get(training)
    for place in few_places(facts, accused.copies.call):
        here = accused.part(place.chosen)
        less = learns or not len(waits(here.copies))  # else the wait is what can go for sure
        size = bytes_text(float(here.copies.size_bytes.mean()))
        yield Suspect(
            title=f"{size} are copied to the host {place.how_often}{place.at}",
            rows=here.copies.row,
            where=place.where,
            change=_gone(here) if less else asynchronous(here),
            cautious=asynchronous(here),
            hopeful=_gone(here),
            fix=f"Reduce on the device what is copied{place.at} (argmax, topk, a sum) and read the result; if the "
            "data is needed, copy it into pinned memory with non_blocking=True and wait for an event before reading "
            "it.",
            reason="copies of at least 1 MB to the host in every step; the least gain keeps them and only ends the wait"
            + ("" if less else ", and so does the expected one: what is inferred may have to be returned"),
        )


def _gone(accused: CopyReasons) -> Change:
    return Change(unblocked=waits(accused.copies), removed=accused.copies.row)


def _answers(facts: Facts, accused: CopyReasons) -> NDArray[np.bool_]:
    """bool[k]: copies that end the only step there is: what it was for, and nothing that could go on meanwhile."""
    computing = facts.get(kernels).compute().call
    launched = facts.trace.ts_ns[computing[computing >= 0]]
    last = int(launched.max()) if len(launched) else 0
    alone = len(facts.get(steady)) == 1
    return alone & (facts.trace.ts_ns[accused.copies.call] > last)


RULE = Rule("d2h-large-output", Family.TRANSFER, check, frozenset({Need.DEVICE}))
