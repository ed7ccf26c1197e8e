"""An inference records what only a backward pass would need.

## What it finds
Forward passes that record autograd's graph, in a recording without any backward pass.

## Why it is slow
Each operator makes a node and keeps its inputs alive. Time is lost a little, memory a lot.

## How it is detected
Most operators carry a `Sequence number`, which autograd gives to what it records, and no operator of a backward pass
nor an optimizer runs in the steady steps. What it costs is not visible, so no gain is given.

## When it does not matter
Where gradients follow later, or are wanted of the inputs. Kineto writes sequence numbers for training steps too: with a
backward pass nothing is reported.

## How to fix it
Before:

```python
out = model(x)
```

After:

```python
with torch.inference_mode():
    out = model(x)
```

## References
- meta-pytorch/torchrec#4703: 345 ms became 322 without a gradient that nobody read
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind

MOST, LEAST = 0.3, 10


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for a forward pass that records a graph nobody walks."""
    times, trace, tree = facts.get(steady), facts.trace, facts.get(nesting)
    operators = times.rows(facts, named(trace, Kind.OPERATOR, lambda name: name.startswith("aten::")))
    above = tree.parent[operators]
    outer = operators[(above < 0) | (trace.kind[np.maximum(above, 0)] != Kind.OPERATOR)]
    backward = named(trace, Kind.OPERATOR, lambda name: "Backward" in name or name.startswith("autograd::engine"))
    optimizer = named(trace, Kind.ANNOTATION, lambda name: name.startswith("Optimizer."))
    if len(backward) or len(optimizer) or len(outer) < LEAST * len(times):
        return
    recorded = outer[trace.args.sequence_number.at(outer, -1) > 0]
    if (
        len(recorded) < MOST * len(outer)
        or len(np.unique(trace.args.sequence_number.at(recorded, 0))) < len(recorded) / 2
    ):
        return
    yield Suspect(
        title=f"{len(recorded) / len(times):.4g} operators a step record a graph for a backward pass that never comes",
        rows=recorded,
        where=facts.get(whereabouts).most(recorded),
        fix="Run the forward pass under torch.inference_mode() (or torch.no_grad()).",
        reason="what recording costs is not in the trace: compare a run under torch.inference_mode()",
        confidence="low",
        verdict="cannot-tell",
    )


RULE = Rule("unused-gradient", Family.MEASUREMENT, check)
