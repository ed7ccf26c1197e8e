"""A tensor is indexed or sliced by a number that lives on the device.

## What it finds
`alphas[t]` with a `t` on the device, `x[:length]` with a length on the device, `x.narrow(0, start, n)`: in samplers and
schedulers once a denoising step, in models once a layer.

## Why it is slow
Where a slice begins is a matter for the host: it waits for the device to tell the number, and the device idles while
the next operators are issued. A compiled or captured model, which hardly needs the host, is slowed down most.

## How it is detected
`aten::item` of an integer, not written by a person (`.item()`), that waits and is followed within 50 us by
`aten::select`, `aten::slice` or `aten::narrow`, at one line in at least 80 % of the steady steps. Without recorded
types, 8 bytes count as an integer. The gain is the step replayed without these waits.

## When it does not matter
In the first step of a sampler only, it is one gap a call; the rule is silent. Numbers on the CPU wait for nothing.

## How to fix it
Before:

```python
for t in scheduler.timesteps:  # on the device
    alpha = alphas[t]
```

After:

```python
for t in scheduler.timesteps.tolist():  # once, before the loop
    alpha = alphas[t]
```

## References
- huggingface/diffusers#9475 and #9485: a wait after every denoising step; indexing on the host made a compiled video
  pipeline about 42 % faster
- huggingface/diffusers#11696: one such read in a scheduler's first step
"""

from collections.abc import Iterator

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.wait_reasons import Reason
from torchdiag.timeline.facts.waiting_lines import waiting_lines


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that indexes by a number of the device."""
    for line in waiting_lines(facts, Reason.INDEX):
        yield Suspect(
            title=f"Indexing by a number on the device makes the host wait {line.often}{line.at}",
            rows=line.waits.row,
            where=line.where,
            change=Change(unblocked=line.waits.calls),
            fix=f"Keep the index on the host as a Python integer{line.at} (one `tolist()` before the loop), or gather "
            "on the device with `index_select` or `torch.gather`.",
            reason="an integer is read from the device right before the indexing that needs it",
        )


RULE = Rule("sync-device-scalar-index", Family.SYNC, check, frozenset({Need.DEVICE}))
