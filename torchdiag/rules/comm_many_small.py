"""Many small collectives are sent one by one.

## What it finds
More than 20 collectives a step with messages of less than 64 kB: synchronised batch norms, metrics that are reduced
one by one, hooks that communicate each parameter.

## Why it is slow
A small collective costs its latency, tens of microseconds, however few bytes it carries; all processes have to meet
for each of them.

## How it is detected
More than 20 collectives on devices with a message of less than 64 kB in most steady steps, with the median message
below that, and some of them running with nothing computing. The gain is the step replayed with the time of one of
them.

## When it does not matter
Collectives of control data between host processes (gloo) are not on the device's path and not counted. Hidden ones
cost nothing. Where the trace does not tell sizes, nothing is said.

## How to fix it
Before:

```python
for name, value in metrics.items():
    dist.all_reduce(value)
```

After:

```python
together = torch.stack(list(metrics.values()))
dist.all_reduce(together)  # once, and only on logging steps
```

For gradients, larger buckets (`bucket_cap_mb`); for norms, a norm that needs no statistics of other ranks.

## References
- NVIDIA/Megatron-LM#7076: a logical and of scalars across ranks, several times a step
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import bytes_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.collective_reasons import Reason, collective_reasons
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.steady import steady


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that sends small messages; all lines together send many."""
    table, times = facts.get(collective_reasons).of(Reason.MANY_SMALL), facts.get(steady)
    table = table.part(table.host >= 0)
    for place in few_places(facts, table.host, in_most=False):
        here = table.part(place.chosen)
        once = np.unique(here.kernels.step, return_index=True)[1]
        rest = np.delete(np.arange(len(here)), once)
        if not len(rest):
            continue
        size = bytes_text(float(np.median(here.size_bytes)))
        yield Suspect(
            title=f"{place.often:.3g} collectives a step carry a median of {size} each{place.at}",
            rows=here.kernels.row,
            where=place.where,
            change=Change(
                removed=here.kernels.row[rest],
                shortened=np.unique(here.host[rest]),
            ),
            fix=f"Put what is communicated{place.at} into one tensor and one collective, or communicate it on logging "
            "steps only.",
            reason=f"{len(table) / len(times):.3g} collectives of less than 64 kB in a step, assumed to become one a "
            "line",
            confidence="medium",
        )


RULE = Rule("comm-many-small", Family.COMMUNICATION, check, frozenset({Need.DEVICE}))
