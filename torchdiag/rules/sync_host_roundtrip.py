"""A tensor goes to the host in the middle of the step, and what the host makes of it comes back.

## What it finds
`cost.cpu()`, a computation in NumPy, SciPy or plain Python (matching, non-maximum suppression, a metric), and a copy of
the outcome to the device, all within one step, often once a layer or once a sample.

## Why it is slow
The host waits for the device, then the device waits for the host: nothing is queued while the host computes. Every trip
costs both waits.

## How it is detected
The host waits for a copy of more than 8 bytes from the device, and the next thing that its thread issues is a copy to
the device. With stacks, both happen in one function that began within the step, or NumPy and its like run between them
(both, where no steps are known); without stacks, several such trips in each marked step are required. A loader's batch
or a step's mark between the two ends the trip: then it was a result, followed by the next input. The gain is the step
replayed without these waits and without the host's work between them, as if it were done on the device; at least, as
if all trips of a step were one.

## When it does not matter
In an evaluation that runs once in a while, or where another stream keeps the device busy meanwhile (the replay shows
it).

## How to fix it
Before:

```python
for cost in costs:  # one trip a layer
    row, column = linear_sum_assignment(cost.cpu())
    pairs.append(torch.as_tensor(column, device=cost.device))
```

After:

```python
together = torch.stack(costs).cpu()  # one trip
columns = [linear_sum_assignment(cost)[1] for cost in together]
pairs = torch.as_tensor(np.stack(columns)).to(device, non_blocking=True)
```

## References
- mindee/doctr#2141: about 200 waits a step, 52 calls made into one
- facebookresearch/detr#562: the matcher's trip to the host
- roboflow/rf-detr#1281: a whole cost matrix was sent where its blocks were enough
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.blocking import blocking
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.host_between import host_between
from torchdiag.timeline.facts.round_trips import round_trips
from torchdiag.timeline.facts.wait_reasons import Reason
from torchdiag.timeline.facts.waiting_lines import WaitingLine, waiting_lines
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that takes a tensor to the host and brings something back."""
    trips = facts.get(round_trips)
    stacks = bool(np.any(facts.trace.kind == Kind.PYTHON))
    waits = facts.get(blocking)
    for line in waiting_lines(facts, Reason.ROUND_TRIP):
        back = trips.of(line.waits.with_copy)
        number = len(set(back.tolist())) / line.steps
        both = np.union1d(line.waits.calls, waits.part(np.isin(waits.with_copy, back)).calls)
        yield Suspect(
            title=f"A tensor goes to the host and back while the device waits, {line.often}{line.at}",
            rows=line.waits.row,
            where=line.where,
            change=Change(unblocked=both, shortened=host_between(facts, line.waits.row, back)),
            cautious=_all_but_one(line) if number > 1 else Change(unblocked=line.waits.calls),
            fix=_fix(line, number),
            reason="after the wait the thread issues nothing until it copies something to the device; that all happens "
            "on the device instead, or at least " + ("all trips of a step become one" if number > 1 else "later"),
            confidence="high" if stacks else "medium",
        )


def _all_but_one(line: WaitingLine) -> Change:
    """What batching all trips of a step into one takes away."""
    first = np.unique(line.waits.step, return_index=True)[1]
    rest = np.ones(len(line.waits), np.bool_)
    rest[first] = False
    return Change(unblocked=line.waits.part(rest).calls)


def _fix(line: WaitingLine, number: float) -> str:
    if number > 1:
        return (
            f"Compute it on the device{line.at}; else fetch all {number:.3g} tensors of a step with one copy into a "
            "pinned buffer, and send the outcome back with one non_blocking copy."
        )
    return (
        f"Compute it on the device{line.at}; else issue work that does not depend on it first, and send the outcome "
        "back from a pinned buffer with non_blocking=True."
    )


RULE = Rule("sync-host-roundtrip", Family.SYNC, check, frozenset({Need.DEVICE}))
