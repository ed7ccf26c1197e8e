"""Tensors or their autograd graphs are kept from step to step.

## What it finds
Training whose memory or whose backward pass grows with every step: `total += loss` without `.detach()`, lists of
outputs that are never emptied, hidden state that is not detached, `retain_graph=True`.

## Why it is slow
A loss that is kept keeps every activation of its step. Memory runs full in the end; and where the kept graph is run
again, each backward pass is longer than the one before.

## How it is detected
Over at least five steady steps, one of two: the number of backward nodes rises in every step while the forward pass
stays the same; or, where memory events were recorded and a backward pass runs, the least memory that is allocated
during a step rises in every step, as much in the second half as in the first. No gain is computed: it grows with the
length of the run.

## When it does not matter
Caches that fill up and then stay as they are, and the state that an optimizer makes in its first step, do not rise to
the end. Caches of keys and values grow in inference, where no backward pass runs.

## How to fix it
Before:

```python
total += loss
outputs.append(model(batch))
```

After:

```python
total += loss.detach()
outputs.append(model(batch).detach().cpu())
```

Detach the hidden state of a recurrent network between batches, and drop `retain_graph=True`.

## References
- facebookresearch/dinov3#150: memory of the host that creeps up
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.amounts import bytes_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.growth import NODE, Counts, growth
from torchdiag.timeline.facts.nesting import named
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

LEAST_STEPS = 5
LEAST_BYTES = 64 << 10
"""Less than this a step may be noise of the program's own bookkeeping."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for a backward pass that grows, or else for memory that does."""
    times = facts.get(steady)
    if times.whole or len(times) < LEAST_STEPS:
        return
    told = facts.get(growth)
    nodes = times.rows(facts, named(facts.trace, Kind.OPERATOR, lambda name: name.startswith(NODE)))
    first, last = int(told.backward[0]), int(told.backward[-1])
    if first and _rises(told.backward) and len(set(told.forward.tolist())) == 1:
        yield Suspect(
            title=f"The backward pass grows with every step: {first} nodes in the first of {len(times)} steps, {last} "
            "in the last",
            rows=nodes,
            fix="Detach what is kept from step to step (hidden state, losses that are summed), and drop "
            "retain_graph=True.",
            reason="the number of backward nodes rises in every step and the forward pass stays the same; what it "
            "costs depends on how long the run is",
        )
    elif first and len(told.least_bytes) and _rises(told.least_bytes):
        a_step = (int(told.least_bytes[-1]) - int(told.least_bytes[0])) / (len(times) - 1)
        if a_step >= LEAST_BYTES:
            yield Suspect(
                title=f"Allocated memory grows by {bytes_text(a_step)} with every one of {len(times)} steps",
                rows=_rows_of_memory(facts),
                fix="Call .detach() (or .item() on logging steps) on losses and outputs that are kept from step to "
                "step, and empty the lists that hold them.",
                reason="the least memory allocated during a step rises in every step to the end; what it costs "
                "depends on how long the run is",
                confidence="medium",
            )


def _rises(values: Counts) -> bool:
    """Whether the values rise in every step, as much in the second half as in the first."""
    rise, half = np.diff(values), (len(values) - 1) // 2
    return bool((rise > 0).all() and 2 * rise[len(rise) - half :].sum() >= rise[:half].sum())


def _rows_of_memory(facts: Facts) -> NDArray[np.int64]:
    """The last memory event of each steady step."""
    times = facts.get(steady)
    rows = facts.trace.args.total_allocated.rows.astype(np.int64)
    rows = rows[np.argsort(facts.trace.ts_ns[rows], kind="stable")]
    step = times.of(facts.trace.ts_ns[rows])
    last = np.flatnonzero((step >= 0) & (np.append(step[1:], -1) != step))
    return np.sort(rows[last])


RULE = Rule("graph-retention-growth", Family.MEMORY, check, frozenset({Need.STEPS}))
