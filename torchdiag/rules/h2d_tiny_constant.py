"""Python values are uploaded to the device in the middle of the computation.

## What it finds
`torch.tensor(0.5, device="cuda")`, or `torch.tensor([...]).to("cuda")`, in a forward pass or a loss: a few bytes that
are made on the host and copied in every step, often once a layer.

## Why it is slow
The copy comes from pageable memory, so that the host waits until the device has caught up. Four bytes cost as much as
an explicit synchronisation.

## How it is detected
A copy of at most 1 kB that the host waits for, with the `aten::lift_fresh` and `aten::detach_` of `torch.tensor`
right after or before its operator, in most steady steps, at a place that does not copy the batch. The gain is the
step replayed without the operators, the copies and the waits.

## When it does not matter
Values made once a run (a learning rate as a tensor) are no finding. What is copied before the first kernel of a step
is the batch, and none either: the device has nothing queued then that the wait could drain.

## How to fix it
Before:

```python
def forward(self, x):
    return x * torch.tensor(self.scale, device=x.device)
```

After:

```python
def forward(self, x):
    return x * self.scale  # a Python number needs no copy
```

For lists register a buffer once, or use `torch.full((n,), value, device=x.device)`, which fills on the device.

## References
- deepmodeling/deepmd-kit#3421: a constant made in the loss blocked the host in every step
- NVIDIA/TransformerEngine#1941: the same in a cast, once a layer
- huggingface/transformers#26151
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
    """One suspect a line that uploads Python values."""
    accused = facts.get(copy_reasons).of(Reason.CONSTANT)
    for place in few_places(facts, accused.copies.call):
        here = accused.part(place.chosen)
        size = bytes_text(float(here.copies.size_bytes.max()))
        yield Suspect(
            title=f"Python values (up to {size}) are uploaded {place.how_often}{place.at}, and waited for",
            rows=here.copies.row,
            where=place.where,
            change=without(here),
            fix=f"Use the Python number itself in the arithmetic{place.at}, make the tensor on the device with "
            "torch.full(..., device=...), or keep it in a buffer registered once.",
            reason="blocking copies of at most 1 kB next to the lift_fresh and detach_ of torch.tensor",
        )


RULE = Rule("h2d-tiny-constant", Family.TRANSFER, check, frozenset({Need.DEVICE}))
