"""The loader starts its worker processes anew for every epoch.

## What it finds
A `DataLoader` with workers but without `persistent_workers=True`: at the end of an epoch they exit, and the next epoch
forks or spawns new ones and waits until they have made their first batches.

## Why it is slow
Starting a worker copies or pickles the dataset and, where processes are spawned (Windows, macOS), imports all modules
again. The device idles for all of it, and for the first batch as well.

## How it is detected
A `__iter__` of `torch/utils/data/dataloader.py` in a steady step, after the loader already gave a batch, with a
`multiprocessing/popen_*.py` frame inside. The gain is the steps replayed without that and without the first batch's
wait; at least, without the start of the processes alone. Without stacks, a wait ten times the usual one, with nothing
launched since the loader's last answer, is told of, but it could as well be the refilling of workers that persist.

## When it does not matter
The very first start of a run cannot be saved. Where processes are forked (Linux) and the dataset is small, it takes
milliseconds: then the gain shows it.

## How to fix it
Before:

```python
loader = DataLoader(dataset, batch_size=64, num_workers=8)
```

After:

```python
loader = DataLoader(dataset, batch_size=64, num_workers=8, persistent_workers=True)
```

## References
- open-mmlab/mmpose#923: about three minutes at the start of every epoch
- boreshkinai/delta-interpolator#3: 7.6 iterations a second became 9.5 on Windows, and nothing changed on Linux
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.epoch_starts import EpochStarts, epoch_starts
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

PERSIST = (
    "Pass persistent_workers=True to the loader{at}; where processes are spawned, keep the dataset light to pickle."
)


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect, if workers are started anew within the steady steps."""
    found = facts.get(epoch_starts)
    if not len(found):
        return
    where = facts.get(whereabouts).most(found.row)
    at = f" at {where.label}" if where.file else ""
    if not found.restarted.all():
        yield Suspect(
            title=f"The first batch of an epoch takes ten times the usual wait or more{at}",
            rows=found.row,
            where=where,
            fix=PERSIST.format(at=at),
            reason="without stacks it cannot be told whether workers are started anew or only refill their queue: "
            "record an epoch's end with with_stack=True",
            confidence="low",
            verdict="cannot-tell",
        )
        return
    took_ms = float((facts.trace.dur_ns[found.row] + facts.trace.dur_ns[found.first]).mean()) / 1e6
    yield Suspect(
        title=f"The loader starts its workers anew{_often(facts, found)}: {took_ms:.3g} ms each time{at}",
        rows=found.row,
        where=where,
        change=Change(shortened=np.concatenate((found.row, found.first))),
        cautious=Change(shortened=found.row),
        fix=PERSIST.format(at=at),
        reason="processes are started after the loader had already given batches; at least, their start goes",
        confidence="high" if len(found) > 1 else "medium",
    )


def _often(facts: Facts, found: EpochStarts) -> str:
    step = facts.get(steady).of(facts.trace.ts_ns[found.row])
    apart = np.diff(np.unique(step))
    if len(apart) and apart.min() == apart.max():
        return f" every {apart[0]} steps"
    return f" {len(step)} times in {len(facts.get(steady))} steps" if len(step) > 1 else ""


RULE = Rule("dataloader-epoch-restart", Family.DATA, check)
