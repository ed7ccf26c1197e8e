"""Every so many steps, one waits for its batch.

## What it finds
Workers that start together, finish together, and are a little too slow: a few batches are ready at once, then the next
one is late.

## Why it is slow
On average the loader is slower than the device; the queue between them only hides that for as many batches as there are
workers.

## How it is detected
Among the waits for batches, at least three idle the device for more than 5 % of a step and three times the usual wait,
at equal distances of two batches or more. The gain is the steps replayed as if batches were always ready; at least, as
if the waits were halved.

## When it does not matter
Something else that happens every so many steps (logging, evaluation) does not lie inside the loader's `__next__` and is
not taken for this.

## How to fix it
Before:

```python
loader = DataLoader(dataset, batch_size=64, num_workers=4)
```

After:

```python
loader = DataLoader(dataset, batch_size=64, num_workers=6, prefetch_factor=4)
```

## References
- gidariss/wDAE_GNN_FewShot#17: iterations are fast until, at a regular distance, one is slow
- ultralytics/yolov3#1926
"""

from collections.abc import Iterator

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.batch_stalls import WORTH, WORTH_WITHOUT_DEVICE, batch_stalls
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.whereabouts import whereabouts


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect, if waits for batches come in a rhythm."""
    stalls, devices = facts.get(batch_stalls), len(facts.partition.devices)
    if stalls.in_process or not stalls.period or facts.has_quality("gpu-not-recorded"):
        return
    late = stalls.waits.part(stalls.long)
    if stalls.share < (WORTH if devices else WORTH_WITHOUT_DEVICE):
        return
    where = facts.get(whereabouts).most(late.row)
    at = f" at {where.label}" if where.file else ""
    mean_ms = float(late.exposed_ns.mean()) / 1e6
    yield Suspect(
        title=f"Every {stalls.period} batches one is {mean_ms:.3g} ms late{at}",
        rows=late.row,
        where=where,
        change=Change(shortened=late.row),
        cautious=Change(shortened=late.row, host_scale=0.5),
        fix=f"Give the loader{at} a few more workers and a larger prefetch_factor: {stalls.period} batches come in a "
        "burst, and the next burst is late; or make items cheaper.",
        reason="long waits lie at equal distances; at least, they are halved",
        confidence="medium",
    )


RULE = Rule("dataloader-periodic-stall", Family.DATA, check)
