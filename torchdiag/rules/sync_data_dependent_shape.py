"""The shape of a result depends on values that live on the device.

## What it finds
`torch.unique`, `torch.nonzero` and `torch.where(condition)`, `repeat_interleave` with a tensor of counts, `F.one_hot`
without `num_classes`, `bincount`, `tensor_split` by a tensor.

## Why it is slow
The host allocates results, so it must know their size; where the size depends on values it waits for the device to
compute them. The device then idles while the next operators are issued.

## How it is detected
A waiting call inside one of these operators (not as part of mask indexing, which has its own rule) at one line in at
least 80 % of the steady steps. The gain is the step replayed without these waits.

## When it does not matter
Once an epoch, or on CPU tensors as in a loader's worker, it costs nothing worth mentioning, and the rule is silent.
Some algorithms need such shapes (routing of tokens to experts): then bound the size and pad.

## How to fix it
Before:

```python
features = torch.repeat_interleave(features, counts, dim=0)
```

After:

```python
# `total` is known on the host, where the counts came from
features = torch.repeat_interleave(features, counts, dim=0, output_size=total)
```

## References
- pytorch/pytorch#131256: operators whose output size is known only on the device
- NVIDIA/Megatron-LM#7076: 35 of 142 waits an iteration were such shapes of a mixture of experts
- sgl-project/sglang#9889
"""

from collections.abc import Iterator

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.wait_reasons import Reason
from torchdiag.timeline.facts.waiting_lines import waiting_lines

ADVICE = {
    "repeat_interleave": "Pass output_size= (the sum of the counts, known on the host){at}.",
    "one_hot": "Pass num_classes={at}: without it the largest class is read from the device.",
    "bincount": "Use `torch.zeros(n, device=...).scatter_add_(0, index, ones)` with the known number n of bins{at}.",
    "tensor_split": "Split by a list of Python integers{at}: keep the sizes on the host.",
    "unique": "Compute the unique values on the host where the data is prepared{at}, or work with a bound on their "
    "number and pad.",
    "nonzero": "Keep the mask{at} (`torch.where(mask, a, b)`, `masked_fill`), or use "
    "`torch.nonzero_static(mask, size=n)` with a bound n.",
}
GENERAL = "Tell the operator the size of its result{at}, compute it on the host beforehand, or pad to a bound."


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line with an operator whose result has a size that only the device knows."""
    for line in waiting_lines(facts, Reason.SHAPE):
        name = "aten::nonzero" if line.operator == "aten::where" else line.operator
        advice = next((text for part, text in ADVICE.items() if part in name), GENERAL)
        yield Suspect(
            title=f"`{line.operator}` makes the host wait for the size of its result {line.often}{line.at}",
            rows=line.waits.row,
            where=line.where,
            change=Change(unblocked=line.waits.calls),
            fix=advice.format(at=line.at),
            reason="the size of the result depends on values on the device",
        )


RULE = Rule("sync-data-dependent-shape", Family.SYNC, check, frozenset({Need.DEVICE}))
