"""The device idles while the program waits for the next batch.

## What it finds
A loader with worker processes (or a queue of one's own) that delivers batches slower than the device works them off.

## Why it is slow
Decoding and augmenting on the host takes longer than a step on the device. All that the device waits for a batch is
lost.

## How it is detected
The `__next__` of a `DataLoader` (without one, waiting for a queue) overlaps idle time of the device for at least 2 % of
the steady steps, in more than one of them; on the host alone, 5 % of their time. Only the overlap counts, not how long
`__next__` takes. Batches made by the waiting thread itself, and waits that come every so many batches, have rules of
their own. The gain is the step replayed as if batches were always ready; at least, as if waits were half as long.

## When it does not matter
To hand over a batch that is ready takes up to 0.2 ms; shorter waits are not counted. A long `__next__` while the
device works off its queue costs nothing, and the rule is silent. The first batch of a run or an epoch is always late.
What the workers do is not in the trace.

## How to fix it
Before:

```python
loader = DataLoader(dataset, batch_size=64, num_workers=2)
```

After:

```python
loader = DataLoader(dataset, batch_size=64, num_workers=12, prefetch_factor=4, persistent_workers=True, pin_memory=True)
```

## References
- open-edge-platform/geti#5958: 3 iterations a second became 13 with more workers
- ultralytics/yolov5#5681
- WongKinYiu/yolov7#2064
"""

from collections.abc import Iterator

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.batch_stalls import WORTH, WORTH_WITHOUT_DEVICE, batch_stalls
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

LATE = "batches are not ready when they are asked for; at least, twice the workers halve the waits"
NOT_RECORDED = "the device's work was not recorded, so it may not wait at all: record with ProfilerActivity.CUDA"


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect, if the steps wait for batches made elsewhere."""
    stalls, devices = facts.get(batch_stalls), len(facts.partition.devices)
    worth = WORTH if devices else WORTH_WITHOUT_DEVICE
    if stalls.in_process or stalls.period or stalls.share < worth or not stalls.repeated:
        return
    rows, times = stalls.waits.row, facts.get(steady)
    where = facts.get(whereabouts).most(rows)
    at = f" at {where.label}" if where.file else ""
    many = "every step" if stalls.always else f"{stalls.steps_waiting} of {len(times)} steps"
    who = "The device idles" if devices else "The program waits"
    recorded = not facts.has_quality("gpu-not-recorded")
    yield Suspect(
        title=f"{who} {stalls.share:.0%} of the time for the next batch, in {many}{at}",
        rows=rows,
        where=where,
        change=Change(shortened=rows),
        cautious=Change(shortened=rows, host_scale=0.5),
        fix=f"Raise num_workers and prefetch_factor of the loader{at} and keep persistent_workers=True; if the "
        "processor is busy already, decode and resize once beforehand, or augment on the device.",
        reason=LATE if recorded else NOT_RECORDED,
        confidence="high" if stalls.always else "medium",
        verdict=None if recorded else "cannot-tell",
    )


RULE = Rule("dataloader-wait", Family.DATA, check)
