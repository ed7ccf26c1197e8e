"""A compiled function falls into pieces.

## What it finds
One call of a function under `torch.compile` that runs as several compiled regions with Python in between.

## Why it is slow
Each piece costs a look-up of its guards and a prologue, the Python in between runs eagerly, and nothing is fused
across the cut.

## How it is detected
In every steady step several `Torch-Compiled Region: F/R` with neighbouring numbers F, each after a look-up of its
own. With stacks, frames called `torch_dynamo_resume_in_...` prove it. The gain replays the step without what lies
between the pieces other than operators, and without the prologues of all pieces but one; the least gain keeps the
Python between them. What fusing across the cuts would win on the device cannot be told.

## When it does not matter
Compiling each layer by itself gives many regions on purpose; layers of one class share the number F, and are not
reported. Large pieces lose nothing but the look-ups.

## How to fix it
Before:

```python
@torch.compile
def forward(x):
    y = layer(x)
    print(y.mean().item())
    return head(y)
```

After:

```python
@torch.compile(fullgraph=True)  # raises at the first break
def forward(x):
    return head(layer(x))
```

`TORCH_LOGS=graph_breaks` names each break and its line.

## References
- pytorch/vision#9518
- huggingface/diffusers#9475: indexing with a device scalar breaks the graph
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline import intervals
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.compilation import Compilation, compilation
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named, operators
from torchdiag.timeline.facts.operator_order import operator_order
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all pieces beyond the first of each run of neighbouring numbers."""
    found, times, trace = facts.get(compilation), facts.get(steady), facts.trace
    frames = np.unique(found.frame)
    later = frames[1:][np.diff(frames) == 1]
    pieces = found.regions[np.isin(found.frame, later)]
    if not len(pieces) or not times.in_most(trace.ts_ns[pieces]):
        return
    resumed = named(trace, Kind.PYTHON, lambda name: "torch_dynamo_resume_in" in name)
    overhead = operators(trace, "Pregraph bytecode", "AOTDispatcher Runtime Wrapper Prologue")
    overhead = np.concatenate((found.lookups, times.rows(facts, overhead)))
    start = trace.ts_ns[found.regions]
    place = np.searchsorted(start, trace.ts_ns[overhead], side="right") - 1
    inside = (place >= 0) & np.isin(found.frame[np.maximum(place, 0)], later)
    before = np.minimum(place + 1, len(start) - 1)
    lookup = np.isin(overhead, found.lookups)
    chosen = np.where(lookup, np.isin(found.frame[before], later), inside)
    where = facts.get(whereabouts).most(pieces)
    at = f" at {where.label}" if where.file else ""
    often = len(pieces) / len(times)
    yield Suspect(
        title=f"A compiled function runs in pieces{at}: {often:.3g} breaks a step",
        rows=pieces,
        where=where,
        change=Change(shortened=overhead[chosen], pieces=_between(facts, found)),
        cautious=Change(shortened=overhead[chosen]),
        fix=f"Compile{at} with fullgraph=True to be told each break, or run with TORCH_LOGS=graph_breaks; take prints, "
        "logging, .item() and other reads of values out of the compiled function.",
        reason="frames that resume after a break were seen"
        if len(resumed)
        else "several compiled regions with neighbouring numbers in every step",
        confidence="high" if len(resumed) else "medium",
    )


def _between(facts: Facts, found: Compilation) -> NDArray[np.int64]:
    """int64[k, 3]: track, start and end of what lies between pieces that follow one another, operators left out."""
    trace = facts.trace
    pieces: list[NDArray[np.int64]] = [np.empty((0, 3), np.int64)]
    operators = facts.get(operator_order).row
    for track in set(trace.track[found.regions].tolist()):
        here = trace.track[found.regions] == track
        regions, frame = found.regions[here], found.frame[here]
        follows = np.flatnonzero(np.diff(frame) == 1)
        low = trace.ts_ns[regions[follows]] + trace.dur_ns[regions[follows]]
        high = np.maximum(trace.ts_ns[regions[follows + 1]], low)
        mine = operators[trace.track[operators] == track]
        begun, ended = trace.ts_ns[mine], trace.ts_ns[mine] + trace.dur_ns[mine]
        inside = intervals.inside(low, high, begun) >= 0
        inside[inside] = ended[inside] <= high[intervals.inside(low, high, begun[inside])]
        start, end = np.sort(np.append(low, ended[inside])), np.sort(np.append(high, begun[inside]))
        pieces.append(np.stack((np.full(len(start), track, np.int64), start, end), axis=1))
    return np.concatenate(pieces)


RULE = Rule("graph-breaks", Family.COMPILE, check)
