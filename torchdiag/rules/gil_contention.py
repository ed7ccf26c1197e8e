"""Another Python thread keeps the interpreter while the one that feeds the device waits for it.

## What it finds
Threads that run Python (a logger, a checkpoint being written, a server, a progress bar) beside the training thread.

## Why it is slow
One thread at a time runs Python. A busy one hands over every 5 ms only, and native code that holds the lock not even
then. The training thread stands still, and the device after it.

## How it is detected
With stacks of all threads (`profile_all_threads`): holes of 2 ms or more between two events of the thread that issues
work, not inside an operator or a call of the runtime, that Python frames of another thread fill, in most steady steps
and for 1 % of their time or more. The operating system makes such holes as well, so that the finding only asks for a
try.

## When it does not matter
Threads that wait (for a queue, a lock, a socket) or are inside native code have released the lock and are not counted.

## How to fix it
Before:

```python
threading.Thread(target=compress_and_upload, args=(state,)).start()
```

After:

```python
multiprocessing.Process(target=compress_and_upload, args=(state,)).start()
```

## References
- pytorch/torchtitan#3393: checkpoints written beside the training
- LMCache/LMCache#1899
"""

from collections.abc import Iterator

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.starved import starved
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

LEAST_SHARE = 0.01


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for whatever the other threads run."""
    holes, frames = facts.get(starved)
    times = facts.get(steady)
    rows = times.rows(facts, frames)
    if not len(rows) or holes.sum() < LEAST_SHARE * times.total_ns or not times.in_most(facts.trace.ts_ns[rows]):
        return
    where = facts.get(whereabouts).most(rows)
    at = f" at {where.label}" if where.label else ""
    yield Suspect(
        title=f"The thread that issues work stands still for {time_text(float(holes.sum()) / len(times))} a step while "
        f"another one runs Python{at}",
        rows=rows,
        where=where,
        fix=f"Move what the other thread does{at} into a process of its own, or do it in native code that releases the "
        "interpreter.",
        reason="holes between two events that Python frames of another thread fill; the operating system makes such "
        "holes, too: run once without that thread",
        confidence="low",
        verdict="cannot-tell",
    )


RULE = Rule("gil-contention", Family.PAUSE, check, frozenset({Need.STACKS}))
