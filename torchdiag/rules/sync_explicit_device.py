"""The program waits for the whole device in every step.

## What it finds
A call of `torch.cuda.synchronize()` (or its like of another vendor) inside the training or inference step, usually
left over from timing.

## Why it is slow
The host stops until everything that was queued has run. While it then issues the next operators, the device has
nothing to do: each such call drains the queue that hides the cost of Python.

## How it is detected
A call that synchronises the device (`cudaDeviceSynchronize`, `hipDeviceSynchronize`) begins inside at least 80 % of the
steady steps and not inside an operator of torch; with stacks its line is told. The gain is the step replayed without
these waits: the host runs ahead until the next thing it truly has to wait for.

## When it does not matter
Profilers synchronise at their own start and stop: calls from their frames, and calls with nothing issued before or
after them in the whole trace, are not counted. A benchmark that times each repetition needs its synchronisation. Where
the device is busy all the time the finding is latent: the wait only shows how far the host was ahead.

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

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.wait_reasons import Reason
from torchdiag.timeline.facts.waiting_lines import waiting_lines


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that synchronises the device."""
    for line in waiting_lines(facts, Reason.DEVICE):
        yield Suspect(
            title=f"The host waits for the whole device {line.often}{line.at}",
            rows=line.waits.row,
            where=line.where,
            change=Change(unblocked=line.waits.calls),
            fix=f"Delete the synchronisation{line.at}; time with CUDA events that are read some steps later, and "
            "synchronise on logging steps only.",
            reason="a device-wide synchronisation in the step itself, outside of any operator",
        )


RULE = Rule("sync-explicit-device", Family.SYNC, check, frozenset({Need.DEVICE}))
