"""The allocator's cache is emptied in every step.

## What it finds
`torch.cuda.empty_cache()` inside the training or inference step.

## Why it is slow
It gives all cached blocks back to the driver, for which the device has to finish all its work, and the next forward
pass asks for the same memory again: two runs of driver calls and a full stop of the device in each step. It makes no
memory available that PyTorch itself could not have reused.

## How it is detected
Runs of calls that free device memory (`cudaFree`) in most steady steps: below the function `empty_cache`, or, without
stacks, outside of any operator. The gain is the step replayed without these calls and without those that take the
memory again; the least gain keeps the latter.

## When it does not matter
Between epochs, before an evaluation, or where another process needs the memory (phases of reinforcement learning),
the call has its place: what most steps do not do is no finding. Programs near the memory limit may rely on it: then
fragmentation is what to fix.

## How to fix it
Before:

```python
loss.backward()
optimizer.step()
torch.cuda.empty_cache()
```

After:

```python
loss.backward()
optimizer.step()
```

If memory runs out without it: `PYTORCH_ALLOC_CONF=expandable_segments:True`, a smaller batch or checkpointing.

## References
- huggingface/transformers#31372 and huggingface/transformers#31530: a trainer emptied the cache in every step
- hao-ai-lab/FastVideo#606: the same in inference
"""

from collections.abc import Iterator

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.allocations import Reason, allocations
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all that emptying the cache costs."""
    calls, times = facts.get(allocations).of(Reason.EMPTIED), facts.get(steady)
    rows = calls.first
    if times.whole or not len(rows) or not times.in_most(facts.trace.ts_ns[rows]):
        return
    where = facts.get(whereabouts).most(rows)
    at = f" at {where.label}" if where.label else ""
    freed, taken = calls.row[calls.gives], calls.row[~calls.gives]
    seen = bool((facts.trace.kind == Kind.PYTHON).any())
    yield Suspect(
        title=f"The memory cache is emptied in every step{at}: "
        f"{len(freed) / len(times):.3g} blocks freed, {len(taken) / len(times):.3g} taken anew",
        rows=rows,
        where=where,
        change=Change(unblocked=freed, shortened=taken),
        cautious=Change(unblocked=freed),
        fix=f"Delete torch.cuda.empty_cache(){at}; if memory runs out without it, set "
        "PYTORCH_ALLOC_CONF=expandable_segments:True or lower the peak.",
        reason="runs of freed blocks "
        + ("below empty_cache" if seen else "outside of operators")
        + " in nearly every steady step; the least gain keeps the calls that take memory again",
        confidence="high" if seen else "medium",
    )


RULE = Rule("empty-cache-in-loop", Family.MEMORY, check, frozenset({Need.DEVICE}))
