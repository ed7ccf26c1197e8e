"""The same data is uploaded in every step.

## What it finds
Class weights, masks, statistics or tables that live on the host and are copied to the device in each step, in the
model or the loss: `weight.to(logits.device)`.

## Why it is slow
Each upload is an operator, a copy and, from pageable memory, a wait of the host for the device. Data that never
changes needs none of it after the first step.

## How it is detected
A source line that copies as many bytes to the device in (nearly) every one of at least two steady steps (at least
three times in a single one), after computing has begun on the batch that the loader gave last. Without a loader in
the trace the line must lie in a module. The gain is the step replayed without the operators, the copies and the
waits.

## When it does not matter
Batches of a fixed size look the same: lines that copy before the first kernel of a step are taken for those of the
batch, and without Python stacks nothing is said. Whether the values change cannot be seen, hence the confidence.

## How to fix it
Before:

```python
def loss(self, logits, labels):
    return F.cross_entropy(logits, labels, weight=self.weight.to(logits.device))
```

After:

```python
def __init__(self, weight):
    super().__init__()
    self.register_buffer("weight", weight, persistent=False)  # moves with the module, once
```

## References
- Nerogar/OneTrainer#1608: two statistics of a module kept on the host, uploaded in every step
"""

from collections.abc import Iterator

from torchdiag.findings.amounts import bytes_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.copy_changes import without
from torchdiag.timeline.facts.copy_reasons import Reason, copy_reasons
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that uploads as many bytes in every step."""
    accused = facts.get(copy_reasons).of(Reason.REPEATED)
    for place in few_places(facts, accused.copies.call):
        here = accused.part(place.chosen)
        size = bytes_text(float(here.copies.size_bytes.mean()))
        yield Suspect(
            title=f"The same {size} are uploaded {place.how_often}{place.at}",
            rows=here.copies.row,
            where=place.where,
            change=without(here),
            fix=f"If the data{place.at} does not change, move it to the device once: register_buffer(..., "
            "persistent=False) in a module, or a copy kept beside it.",
            reason="as many bytes from the same line in every step, in the middle of the computation; whether the "
            "values are the same cannot be seen",
            confidence="medium",
        )


RULE = Rule("h2d-repeated-constant", Family.TRANSFER, check, frozenset({Need.DEVICE, Need.STACKS}))
