"""A TorchScript function bails out of its specialised code.

## What it finds
Scripted functions whose optimised code does not fit the inputs, so that the interpreter runs the fallback.

## Why it is slow
TorchScript specialises a function for the shapes and types of its first calls. What differs later falls back to code
without fusion, or is profiled and optimised anew.

## How it is detected
`prim::BailOut`, `prim::FallbackGraph` or `<fallback>` operators in most steady steps. What the specialised code would
have taken is not in the trace, so no gain is given.

## When it does not matter
The first two or three calls of a scripted function profile and optimise it.

## How to fix it
Before:

```python
model = torch.jit.script(model)
```

After:

```python
model = torch.compile(model)  # or torch.jit.freeze(model) with inputs of one shape
```

## References
- pytorch/pytorch#49900
"""

import re
from collections.abc import Iterator

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind

BAILS = re.compile(r"^(prim::)?(BailOut|FallbackGraph)$|^<fallback( op)?>$|fallback_function")


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all fallbacks."""
    times, trace = facts.get(steady), facts.trace
    rows = times.rows(facts, named(trace, Kind.OPERATOR, lambda name: BAILS.search(name) is not None))
    if not len(rows) or not times.in_most(trace.ts_ns[rows]):
        return
    where = facts.get(whereabouts).most(rows)
    yield Suspect(
        title=f"TorchScript falls back from its optimised code {len(rows) / len(times):.3g} times a step",
        rows=rows,
        where=where,
        fix=f"Replace torch.jit.script{f' at {where.label}' if where.file else ''} by torch.compile, or freeze the "
        "module and give it inputs of one shape.",
        reason="fallbacks in most steps; compare with a run under torch.compile for the gain",
        confidence="medium",
        verdict="cannot-tell",
    )


RULE = Rule("jit-profiling-runs", Family.COMPILE, check)
