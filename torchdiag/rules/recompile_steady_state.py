"""`torch.compile` compiles again in steps that should be warm.

## What it finds
Steps after the first in which `torch.compile` traces and compiles a function anew.

## Why it is slow
A compilation takes from a tenth of a second to minutes, during which the device gets nothing to do. It happens
whenever a guard fails: another shape, another Python number, another object.

## How it is detected
`entire_frame_compile` or `_compile.compile_inner` operators in at least two steady steps. The numbers of
`Torch-Compiled Region: F/R` tell which function it is and how many versions of it there are. The gain is the step
replayed without the compilations.

## When it does not matter
First steps compile by nature, and the second shape of a dimension costs one more compilation, which makes it dynamic.
A single recompilation in the window is therefore not reported.

## How to fix it
Before:

```python
step = torch.compile(step, dynamic=False)
for batch in loader:  # every length is another shape
    step(batch)
```

After:

```python
step = torch.compile(step)
for batch in loader:
    torch._dynamo.mark_dynamic(batch, 1)  # or pad to a few lengths
    step(batch)
```

A Python number that changes (a learning rate, a step counter) belongs into a tensor. `TORCH_LOGS=recompiles` names the
guard that failed.

## References
- pytorch/pytorch#114293: every iteration of a loop compiled anew, because a Python int was guarded
- pytorch/pytorch#121369
- kijai/ComfyUI-MochiWrapper#44
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.compilation import compilation
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all compilations: they have one cause more often than not."""
    found, times = facts.get(compilation), facts.get(steady)
    rows = found.compiles[found.attempted]
    stricken = int(np.count_nonzero(times.per_step(facts.trace.ts_ns[rows])))
    if stricken < 2:
        return
    where = facts.get(whereabouts).most(rows)
    at = f" at {where.label}" if where.file else ""
    frames = [found.version[found.frame == frame] for frame in set(found.frame.tolist())]
    versions = max((int(version.max()) + 1 for version in frames), default=0)
    known = f", up to {versions} versions of one function" if versions > 1 else ""
    yield Suspect(
        title=f"torch.compile compiles again in {stricken} of {len(times)} warm steps{at}{known}",
        rows=rows,
        where=where,
        change=Change(shortened=rows),
        fix=f"Find the guard that fails{at} with TORCH_LOGS=recompiles; mark the dimension that changes as dynamic "
        "(torch._dynamo.mark_dynamic, or dynamic=True), pad to a few sizes, or hold changing numbers in tensors.",
        reason="compilations inside steps after the first",
    )


RULE = Rule("recompile-steady-state", Family.COMPILE, check, frozenset({Need.STEPS}))
