"""Convolutions of fixed shapes run with whatever algorithm cuDNN's heuristics choose.

## What it finds
Steps in which convolutions take most of the device's time, always with the same shapes:
`torch.backends.cudnn.benchmark` might find faster algorithms for them.

## Why it is slow
Without `benchmark`, cuDNN guesses the algorithm from the shape. The guess is often the best one, and sometimes not.

## How it is detected
cuDNN convolutions with half of the device's time or more, whose shapes are the same in every steady step. That a trace
cannot tell which algorithms were not chosen is said: try it, and compare.

## When it does not matter
Reports range from nothing to more than twice as fast. With varying shapes the search would cost more than it wins.

## How to fix it
Before:

```python
model = resnet50().cuda()
```

After:

```python
torch.backends.cudnn.benchmark = True  # before the first step; compare the step times
model = resnet50().cuda()
```

## References
- speechbrain/speechbrain#294: epochs of 17 and 60 minutes became 12 and 25
- arrufat/dlib-pytorch-benchmark#1: no difference
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import inputs
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.nesting import nesting, operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

SHARE = 0.5
FORWARD, BACKWARD = "aten::cudnn_convolution", "aten::convolution_backward"


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all convolutions, which no trace can decide on."""
    tree, times, found = facts.get(nesting), facts.get(steady), facts.get(kernels)
    rows = times.rows(facts, operators(facts.trace, FORWARD))
    if len(times) < 2 or not len(rows) or not len(found):
        return
    both = np.concatenate((rows, times.rows(facts, operators(facts.trace, BACKWARD))))
    inside = np.isin(found.activity, tree.launched_below(both))
    share = float(found.dur_ns[inside].sum()) / max(float(found.compute().dur_ns.sum()), 1.0)
    step, shape = times.of(facts.trace.ts_ns[rows]), facts.get(inputs).codes(rows)
    shapes = {tuple(sorted(shape[step == number].tolist())) for number in range(len(times))}
    if share < SHARE or len(shapes) != 1:
        return
    yield Suspect(
        title=f"Convolutions of unchanging shapes take {100 * share:.0f} % of the kernels' time",
        rows=rows,
        where=facts.get(whereabouts).most(rows),
        fix="Set torch.backends.cudnn.benchmark = True before the first step, compare, and keep it if it wins.",
        reason="a trace cannot tell whether cuDNN had a faster algorithm: profile with the setting and without",
        confidence="low",
        verdict="cannot-tell",
    )


RULE = Rule("cudnn-benchmark-off", Family.KERNEL, check, frozenset({Need.DEVICE, Need.SHAPES, Need.STEPS}))
