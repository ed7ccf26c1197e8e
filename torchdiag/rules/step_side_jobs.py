"""Checkpoints, barriers, object collectives or other programs run inside the step.

## What it finds
`torch.save` while the step waits, `dist.barrier()`, collectives of Python objects, and programs that are started
(`nvidia-smi`) in the training loop.

## Why it is slow
The device is idle while a file is written, while all processes meet, or while another program starts. None of it is
part of the step.

## How it is detected
In steady steps: the functions of `torch.serialization` that save, `c10d::barrier`, the functions of object
collectives, and `subprocess`. Such jobs come every so many steps: the title says in how many of those recorded. The
gain is the steps replayed without them, spread over all steady steps; the least gain keeps what they launch.

## When it does not matter
A checkpoint every thousand steps costs little, however long it takes. A recording of a few steps that happens to hold
one overstates it, which the reason says. Jobs on threads of their own cost nothing unless a launch waits for them.

## How to fix it
Before:

```python
if step % 10 == 0:
    torch.save(model.state_dict(), path)
dist.barrier()
```

After:

```python
if step % 1000 == 0:
    saved = torch.distributed.checkpoint.async_save(model.state_dict(), checkpoint_id=path)
```

Drop barriers that only keep ranks tidy, and read the device's state through NVML in a thread.

## References
- pytorch/torchtitan#1301: six minutes to write a checkpoint
- NVIDIA-NeMo/Automodel#3131: staging a checkpoint slowed the next step
- Lightning-AI/pytorch-lightning#189: nvidia-smi in every step, about ten times slower
"""

import re
from collections.abc import Iterator

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.blocking import blocking
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.nesting import nesting
from torchdiag.timeline.facts.saving import SAVES
from torchdiag.timeline.facts.steady import MOSTLY, steady
from torchdiag.trace.vocabulary import Kind

JOBS: tuple[tuple[str, re.Pattern[str], Kind, str], ...] = (
    ("A checkpoint is written", SAVES, Kind.PYTHON, "Save with torch.distributed.checkpoint.async_save, or rarely."),
    (
        "Processes meet at a barrier", re.compile(r"^c10d::barrier$"), Kind.OPERATOR,
        "Drop the barrier: collectives wait for one another by themselves.",
    ),
    (
        "Python objects are communicated",
        re.compile(r"torch[/\\]distributed[/\\]distributed_c10d\.py\(\d+\): \w+_object(_list)?$"), Kind.PYTHON,
        "Communicate tensors of a known size, or do it on logging steps only.",
    ),
    (
        "Another program is started", re.compile(r"(^|[/\\])subprocess\.py\(\d+\): (run|call|check_\w+|__init__)$"),
        Kind.PYTHON, "Read what it tells through a library (NVML for nvidia-smi), in a thread and not in every step.",
    ),
)  # fmt: skip
"""What the title says, how the events are called, their kind, and the fix."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line and a kind of job."""
    times, tree, waits = facts.get(steady), facts.get(nesting), facts.get(blocking)
    activities = facts.partition.activities
    for title, pattern, kind, fix in JOBS:
        found = FramesAround.named(facts, lambda name, pattern=pattern: pattern.search(name) is not None, kind)
        rows = times.rows(facts, found.rows)
        for place in few_places(facts, rows, in_most=False):
            here = rows[place.chosen]
            steps = len(set(times.of(facts.trace.ts_ns[here]).tolist()))
            often = steps >= MOSTLY * len(times) and len(times) > 1
            span = "the trace" if times.whole else f"{steps} of {len(times)} steps"
            waited = waits.part(waits.inside(facts, here)).calls
            yield Suspect(
                title=f"{title} {'once' if len(here) == 1 else f'{len(here)} times'} in {span}{place.at}",
                rows=here,
                where=place.where,
                change=Change(shortened=here, unblocked=waited, removed=activities.row[tree.launched_below(here)]),
                cautious=Change(shortened=here, unblocked=waited),
                fix=fix,
                reason="seen inside steady steps"
                if often
                else "seen in some steps only: over a whole run it may be rarer than in this recording",
                confidence="high" if often else "low",
            )


RULE = Rule("step-side-jobs", Family.PAUSE, check)
