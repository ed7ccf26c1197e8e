"""The program waits for the whole device in every step.

## What it finds
A call of `torch.cuda.synchronize()` (or its like of another vendor) inside the training or inference step, usually
left over from timing.

## Why it is slow
The host stops until everything that was queued has run. While it then issues the next operators, the device has
nothing to do: each such call drains the queue that hides the cost of Python.

## How it is detected
A call that synchronises the device (`cudaDeviceSynchronize`, `hipDeviceSynchronize`) begins inside a steady step and
not inside an operator; with stacks its line is told. The gain is the step replayed without these waits: the host runs
ahead until the next thing it truly has to wait for.

## When it does not matter
Profilers synchronise at their own start and stop: such calls lie outside of steps and are not counted. Where the
device is busy all the time the finding is latent: the wait only shows how far the host was ahead.

## How to fix it
Before:

```python
start = time.perf_counter()
loss = step(batch)
torch.cuda.synchronize()
print(time.perf_counter() - start)
```

After:

```python
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
loss = step(batch)
end.record()  # read begin.elapsed_time(end) some steps later
```

## References
- HuguesTHOMAS/KPConv-PyTorch#22: training a quarter slower by a synchronisation left from timing
- deepspeedai/DeepSpeed#620
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.blocking import blocking
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that synchronises the device."""
    waits, times = facts.get(blocking), facts.get(steady)
    device_wide = named(facts.trace, Kind.RUNTIME, lambda name: "DeviceSynchronize" in name or "CtxSynchronize" in name)
    bare = waits.part(np.isin(waits.row, device_wide) & (waits.operator < 0))
    for where, rows in facts.get(whereabouts).grouped(bare.row):
        often = len(rows) / len(times)
        at = f" at {where.label}" if where.label else ""
        yield Suspect(
            title=f"The host waits for the whole device {often:.3g} times a step{at}",
            rows=rows,
            where=where,
            change=Change(unblocked=rows),
            fix=f"Delete the synchronisation{at}; time with CUDA events that are read some steps later, and "
            "synchronise on logging steps only.",
            reason="a device-wide synchronisation in the step itself, outside of any operator",
        )


RULE = Rule("sync-explicit-device", Family.SYNC, check, frozenset({Need.DEVICE}))
