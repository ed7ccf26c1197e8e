"""Arguments of probability distributions are checked in every step.

## What it finds
`torch.distributions` objects made, or asked for a log probability, with their validation on.

## Why it is slow
For each argument and each value the check computes a mask, reduces it, and reads the answer back to the host: three
more operators each, and on a device a wait for everything queued.

## How it is detected
`__init__` of `torch/distributions/distribution.py` and `_validate_sample`, with `aten::is_nonzero` inside; without
stacks the operators alone: a comparison, `aten::_is_all_true`, `aten::is_nonzero`. In most steady steps. The gain is
the step replayed without them.

## When it does not matter
While a program is being written the checks find mistakes; turn them off once it works. `__debug__` off (`python -O`)
turns them off as well.

## How to fix it
Before:

```python
log_prob = Normal(mean, std).log_prob(action)
```

After:

```python
torch.distributions.Distribution.set_default_validate_args(False)  # once, or validate_args=False for one
log_prob = Normal(mean, std).log_prob(action)
```

## References
- PyTorch's notes of release 1.8: validation of distributions is on unless turned off
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.nesting import nesting, operators
from torchdiag.timeline.facts.operator_order import operator_order
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Call, Kind

Rows = NDArray[np.int64]

VALIDATES = re.compile(
    r"torch[/\\]distributions[/\\](distribution\.py\(\d+\): __init__|\w+\.py\(\d+\): _validate_sample)$"
)
CHECKS = tuple(f"aten::{name}" for name in (
    "_is_all_true", "all", "eq", "ne", "gt", "ge", "lt", "le", "__and__", "reshape", "remainder", "isfinite",
))  # fmt: skip
"""What constraints are checked by."""
MOST_CHECKS = 8
"""So many operators one constraint takes at most."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that makes or asks a distribution."""
    trace, tree, order = facts.trace, facts.get(nesting), facts.get(operator_order)
    frames = FramesAround.named(facts, lambda name: VALIDATES.search(name) is not None, Kind.PYTHON)
    asked = facts.get(steady).rows(facts, operators(trace, "aten::is_nonzero"))
    asked = asked[order.position[asked] >= 0]
    certain = frames.around(asked)
    reduced = tree.mask(operators(trace, "aten::_is_all_true"))
    before = order.neighbour(asked, -1)
    asked = asked[certain | ((before >= 0) & reduced[before])]
    for place in few_places(facts, asked):
        here = asked[place.chosen]
        runs = np.stack((_first(facts, here), here), axis=1)
        # The frame of a whole check, where it is known, holds the Python around these operators as well.
        around = tree.nearest(here, tree.mask(frames.rows))
        inside = order.through(runs)
        change = Change(
            runs=runs,
            shortened=np.unique(around[around >= 0]),
            removed=tree.activities.row[tree.launched_below(inside)],
            unblocked=tree.descendants(inside, np.flatnonzero(trace.call == Call.SYNC)),
        )
        earlier = order.neighbour(runs[:, 0], -1)
        python = np.stack((np.where(earlier >= 0, earlier, runs[:, 0]), here), axis=1)
        yield Suspect(
            title=f"Arguments of torch.distributions are validated {place.how_often}{place.at}, each with a read-back",
            rows=here,
            where=place.where,
            change=change,
            hopeful=replace(change, runs=python),
            fix="Turn validation off once the program works: torch.distributions.Distribution."
            f"set_default_validate_args(False), or validate_args=False{place.at}.",
            reason="checks inside frames of torch.distributions"
            if frames.around(here).all()
            else "comparisons, _is_all_true and is_nonzero, as torch.distributions validates; no stacks tell for "
            "sure, nor the Python around them: the most gain begins at the operator before",
            confidence="high" if frames.around(here).all() else "medium",
        )


def _first(facts: Facts, asked: Rows) -> Rows:
    """The first operator of the check that ends with each `is_nonzero`."""
    order = facts.get(operator_order)
    checks = facts.get(nesting).mask(operators(facts.trace, *CHECKS))
    first, going = asked.copy(), np.ones(len(asked), np.bool_)
    for _ in range(MOST_CHECKS):
        before = order.neighbour(first, -1)
        going &= (before >= 0) & checks[before]
        first = np.where(going, before, first)
    return first


RULE = Rule("redundant-validation", Family.PAUSE, check)
