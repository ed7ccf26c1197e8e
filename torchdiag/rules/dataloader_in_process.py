"""Batches are made by the training process itself, between the steps.

## What it finds
A `DataLoader` with `num_workers=0`, the default: reading, decoding, augmenting and collating run on the thread that
also issues the device's work.

## Why it is slow
While the thread makes a batch, it launches nothing. The device soon has nothing to do, in every step.

## How it is detected
`_SingleProcessDataLoaderIter.__next__` overlaps idle time of the device for at least 2 % of the steady steps; on the
host alone, 5 % of their time. With stacks, the function that takes most of it is told. The gain is the step replayed as
if batches were always ready; at least, as if half of the work remained.

## When it does not matter
To hand over a batch that is ready takes up to 0.2 ms; shorter waits are not counted. A dataset that already lies on
the device, or one whose items cost nothing, is made no faster by workers; below 2 % the rule is silent. In notebooks
on Windows workers need the dataset in a module of its own.

## How to fix it
Before:

```python
loader = DataLoader(dataset, batch_size=64)
```

After:

```python
loader = DataLoader(dataset, batch_size=64, num_workers=8, persistent_workers=True, pin_memory=True)
```

## References
- pytorch/kineto#774: a sample whose steps are mostly `_SingleProcessDataLoaderIter.__next__`
"""

from collections.abc import Iterator

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.batch_stalls import WORTH, WORTH_WITHOUT_DEVICE, batch_stalls
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.hottest import hottest
from torchdiag.timeline.facts.whereabouts import whereabouts

HALF = 0.5
NOT_RECORDED = "the device's work was not recorded, so it may not wait at all: record with ProfilerActivity.CUDA"


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect, if the steps wait for batches that their own thread makes."""
    stalls, devices = facts.get(batch_stalls), len(facts.partition.devices)
    if not stalls.in_process or stalls.share < (WORTH if devices else WORTH_WITHOUT_DEVICE) or not stalls.repeated:
        return
    rows = stalls.waits.row
    where, most = facts.get(whereabouts).most(rows), hottest(facts, rows)
    at = f" at {where.label}" if where.file else ""
    who = "The device idles" if devices else "The program spends"
    spent = f", {most.share:.0%} of it in {most.label}" if most is not None else ""
    recorded = not facts.has_quality("gpu-not-recorded")
    slow = f"; first speed up {most.label}" if most is not None and most.share > HALF else ""
    reason = f"`__next__` makes the batch on the thread that launches{spent}; at least, half of it goes to the workers"
    yield Suspect(
        title=f"{who} {stalls.share:.0%} of the time while the training process itself makes the next batch{at}",
        rows=rows,
        where=where,
        change=Change(shortened=rows),
        cautious=Change(shortened=rows, host_scale=0.5),
        fix=f"Give the loader{at} num_workers=4 or more (and persistent_workers=True, pin_memory=True), so that "
        f"batches are made while the device computes{slow}.",
        reason=reason if recorded else NOT_RECORDED,
        verdict=None if recorded else "cannot-tell",
    )


RULE = Rule("dataloader-in-process", Family.DATA, check)
