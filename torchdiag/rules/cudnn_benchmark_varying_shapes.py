"""cuDNN searches for its fastest algorithm again for every new input size.

## What it finds
Convolutions that run a burst of different kernels, and take many times as long as their peers, whenever their input has
a shape that was not seen before: `torch.backends.cudnn.benchmark` is on, and the shapes vary.

## Why it is slow
With `benchmark` on, cuDNN tries every algorithm for each new shape and remembers the best. Images of ever new sizes
never meet what was remembered.

## How it is detected
In steady steps, calls of one convolution operator that take at least ten times as long on the host as those of shapes
seen before (as its median where there are none), have shapes seen for the first time, and launch at least four
different kernels. The gain replays the step with these calls at the usual length, without their waits, and with one of
their kernels each.

## When it does not matter
The first call for a fixed shape is a warm-up. With a handful of shapes the search ends after a few steps.

## How to fix it
Before:

```python
torch.backends.cudnn.benchmark = True
for image in images_of_any_size:
    model(image)
```

After:

```python
torch.backends.cudnn.benchmark = False  # or pad the images to a few sizes
```

## References
- pytorch/pytorch#2759: 0.02 s became 0.6 to 2.3 s an iteration with inputs of 400 to 600 pixels
- open-mmlab/mmdetection#725
- hpcaitech/ColossalAI#1063
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.blocking import blocking
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import nesting
from torchdiag.timeline.facts.slow_calls import slow_calls
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

CONVOLUTIONS = frozenset(
    f"aten::{name}"
    for name in ("cudnn_convolution", "cudnn_convolution_transpose", "miopen_convolution", "convolution_backward")
)
SLOWER, LEAST_NS, KERNELS = 10, 1_000_000, 4


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all searches."""
    tree, trace = facts.get(nesting), facts.trace
    activities = facts.partition.activities
    searches: list[int] = []
    extra: list[int] = []
    usual = 0.0
    for calls in slow_calls(facts, CONVOLUTIONS, SLOWER, LEAST_NS):
        for row in calls.slow[calls.new_shape].tolist():
            below = activities.row[tree.launched_below(np.array([row]))]
            if len(set(trace.name[below].tolist())) >= KERNELS:
                searches.append(row)
                extra += below[:-1].tolist()
                usual += calls.usual_ns
    rows, times = np.array(searches, np.int64), facts.get(steady)
    stricken = int(np.count_nonzero(times.per_step(trace.ts_ns[rows])))
    if stricken < 2:
        return
    where, waits = facts.get(whereabouts).most(rows), facts.get(blocking)
    at = f" at {where.label}" if where.label else ""
    yield Suspect(
        title=f"cuDNN searches for algorithms in {stricken} of {len(times)} warm steps, for {len(rows)} new shapes",
        rows=rows,
        where=where,
        change=Change(
            shortened=rows,
            host_scale=min(usual / float(trace.dur_ns[rows].sum()), 1.0),
            unblocked=waits.part(waits.inside(facts, rows)).calls,
            removed=np.array(extra, np.int64),
        ),
        fix="Set torch.backends.cudnn.benchmark = False, or pad or bucket the inputs to a few sizes"
        f"{at and f' before the convolutions{at}'}.",
        reason="each slow convolution has a new shape and runs several different kernels",
    )


RULE = Rule("cudnn-benchmark-varying-shapes", Family.COMPILE, check, frozenset({Need.DEVICE, Need.SHAPES, Need.STEPS}))
