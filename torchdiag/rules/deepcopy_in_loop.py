"""Objects are copied deeply in every step.

## What it finds
`copy.deepcopy` of a model, a batch or a configuration inside the step.

## Why it is slow
A deep copy walks an object in Python, member by member, and copies every tensor it meets. The device waits meanwhile.

## How it is detected
`deepcopy` frames of the standard library's `copy.py`, at least 20 a step, in most steady steps. The gain is the step
replayed without them; the least gain leaves what recording so many frames may itself have cost.

## When it does not matter
A copy made once, at the start or for the best checkpoint, is not reported.

## How to fix it
Before:

```python
for batch in loader:
    teacher = copy.deepcopy(model)
    loss = step(model, teacher, batch)
```

After:

```python
teacher = copy.deepcopy(model)
for batch in loader:
    teacher.load_state_dict(model.state_dict())  # in place
    loss = step(model, teacher, batch)
```

Of a dictionary of tensors `dict(batch)` copies as much as most programs need.

## References
- Python's `copy` module: a deep copy constructs a new compound object and then, recursively, copies of what is in it
"""

import re
from collections.abc import Iterator

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.python_calls import per_step_ns, python_calls
from torchdiag.timeline.facts.steady import steady

COPIES = re.compile(r"(^|[/\\])copy\.py\(\d+\): deepcopy$")
LEAST_CALLS = 20


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that copies deeply."""
    found = python_calls(facts, lambda name: COPIES.search(name) is not None)
    for place in few_places(facts, found.row):
        here = found.part(place.chosen)
        calls = int(here.calls.sum()) / len(facts.get(steady))
        if calls < LEAST_CALLS:
            continue
        yield Suspect(
            title=f"copy.deepcopy takes {time_text(per_step_ns(facts, here.total_ns))} a step{place.at}: it copies "
            f"{calls:.4g} objects",
            rows=here.row,
            where=place.where,
            change=here.gone(),
            cautious=here.gone_but_recording(),
            fix=f"Copy once before the loop and update in place (load_state_dict, copy_){place.at}, or make a shallow "
            "copy: copy.copy(x), dict(x), list(x).",
            reason="deepcopy frames in every step; the least gain leaves what recording their frames may have cost",
        )


RULE = Rule("deepcopy-in-loop", Family.PAUSE, check, frozenset({Need.STACKS}))
