"""One process drives several devices with nn.DataParallel.

## What it finds
`torch.nn.DataParallel` in the step.

## Why it is slow
Each step copies all parameters to every device, scatters the batch and gathers the outputs on the first one, from
threads of a single process that share one interpreter lock. The first device works more than the others, which wait.

## How it is detected
`Broadcast`, `Scatter` and `Gather` operators, or the functions `replicate` and `data_parallel` where the trace has
stacks, in most steady steps. The gain is the step replayed without these operators and without what they launch: a
lower bound, as the threads' waiting for one another stays.

## When it does not matter
Models whose layers are spread over several devices also launch to all of them from one process: without these
operators they are no finding. On a single device DataParallel calls the module as it is, and costs nothing.

## How to fix it
Before:

```python
model = torch.nn.DataParallel(model).cuda()
```

After:

```python
# torchrun --nproc-per-node=8 train.py
torch.distributed.init_process_group()
model = DistributedDataParallel(model.to(local_rank), device_ids=[local_rank])
```

## References
- pytorch/pytorch#28212 and pytorch/pytorch#28275: replicating took longer after an upgrade
- pytorch/pytorch#17209, pytorch/pytorch#18522
- walkerning/aw_nas#17: 24 instead of 18 seconds an epoch
"""

import re
from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.nesting import nesting, operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind

MOVES = ("Broadcast", "Scatter", "Gather")
REPLICATES = re.compile(r"torch[/\\]nn[/\\]parallel[/\\]replicate\.py\(\d+\): replicate$")


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all that replicates, scatters and gathers."""
    times, tree = facts.get(steady), facts.get(nesting)
    frames = FramesAround.named(facts, lambda name: REPLICATES.search(name) is not None, Kind.PYTHON).rows
    each = [times.rows(facts, operators(facts.trace, name)) for name in MOVES]
    replicas = times.rows(facts, frames) if len(frames) else each[0]
    if not times.in_most(facts.trace.ts_ns[replicas]) or not (len(frames) or all(len(rows) for rows in each)):
        return
    gone = tree.tops(np.unique(np.concatenate([replicas, *each])))
    activities = facts.partition.activities
    where = facts.get(whereabouts).most(replicas)
    devices = len(facts.partition.devices)
    yield Suspect(
        title=f"nn.DataParallel copies the parameters to {devices or 'all'} devices "
        f"{len(replicas) / len(times):.3g} times a step",
        rows=replicas,
        where=where,
        change=Change(shortened=gone, removed=activities.row[tree.launched_below(gone)]),
        fix="Start one process a device with torchrun and wrap the model in DistributedDataParallel.",
        reason="nn.DataParallel replicates, scatters and gathers in every step; that its threads wait for one another "
        "comes on top",
    )


RULE = Rule("dataparallel-in-use", Family.COMMUNICATION, check)
