"""A compiled function has hit the limit of recompilations and runs eagerly.

## What it finds
A function under `torch.compile` that was compiled so often that PyTorch has given up on it: from then on it runs as if
it had never been compiled, without an error.

## Why it is slow
All that compilation won is lost, and each call still pays for the look-up.

## How it is detected
A compilation that ends before it traces anything (that is the limit being hit), and look-ups after which no compiled
region runs. Where the trace also holds steps in which it ran compiled, the gain is the measured ratio of both.

## When it does not matter
Functions that PyTorch skips on purpose look up without running a region as well; without the compilation that gave up
nothing is reported. A window that begins after the limit was hit cannot show it.

## How to fix it
Before:

```python
step = torch.compile(step, dynamic=False)  # the ninth shape runs eagerly
```

After:

```python
step = torch.compile(step, dynamic=True)  # or raise recompile_limit, if there are only a few more shapes
```

## References
- NVIDIA/TensorRT-LLM#6142: eight batch sizes, and the ninth ran eagerly unnoticed
- PrimeIntellect-ai/prime-rl#1778
- HomebrewML/HeavyBall#16
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.compilation import compilation
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.nesting import nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.timeline.step_groups import median
from torchdiag.trace.vocabulary import Kind


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for the look-ups that end in eager code after the limit was hit."""
    found, times, trace = facts.get(compilation), facts.get(steady), facts.trace
    gave_up = found.compiles[~found.attempted]
    if not len(gave_up):
        return
    eager = found.lookups[~found.runs & (trace.ts_ns[found.lookups] > trace.ts_ns[gave_up[0]])]
    if not len(eager):
        return
    where = facts.get(whereabouts).most(eager)
    at = f" at {where.label}" if where.file else ""
    length = (times.end_ns - times.start_ns).tolist()
    in_eager = np.flatnonzero(times.per_step(trace.ts_ns[eager]) > 0).tolist()
    compiling = times.per_step(trace.ts_ns[found.compiles]) > 0
    in_compiled = [
        step
        for step in np.flatnonzero((times.per_step(trace.ts_ns[found.regions]) > 0) & ~compiling).tolist()
        if step not in in_eager
    ]
    ratio = (
        median([length[step] for step in in_compiled]) / median([length[step] for step in in_eager])
        if (in_compiled)
        else 1.0
    )
    yield Suspect(
        title=f"A compiled function{at} has hit the limit of recompilations and runs eagerly in {len(in_eager)} steps",
        rows=eager,
        where=where,
        change=_as_compiled(facts, in_eager, ratio) if ratio < 1 else None,
        fix=f"Stop the recompilations{at} (dynamic=True, padding to a few sizes), or raise the limit: "
        "torch.compile(..., recompile_limit=n).",
        reason="a compilation gave up before tracing, and no compiled region runs after it"
        + (f"; compiled steps took {ratio:.2f} times as long" if ratio < 1 else "; no compiled step to compare with"),
        verdict=None if ratio < 1 else "cannot-tell",
    )


def _as_compiled(facts: Facts, steps: list[int], ratio: float) -> Change:
    """The eager steps at the speed of the compiled ones, host and device."""
    trace, times, found = facts.trace, facts.get(steady), facts.get(kernels)
    operators = np.flatnonzero(trace.kind == Kind.OPERATOR)
    operators = operators[np.isin(times.of(trace.ts_ns[operators]), steps)]
    return Change(
        shortened=facts.get(nesting).tops(operators),
        host_scale=ratio,
        scaled=found.row[np.isin(found.step, steps)],
        device_scale=ratio,
    )


RULE = Rule("recompile-limit-fallback", Family.COMPILE, check, frozenset({Need.STEPS}))
