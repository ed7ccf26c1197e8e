"""The tree of modules is walked in every step.

## What it finds
`model.train()`, `named_parameters()`, `state_dict()`, `apply()`, `model.to(device)` of a model that is there already,
and the like, called inside the step of a model of many modules.

## Why it is slow
Each walk visits every module in Python and, for parameters, every name and a set of what was seen already. A model of
500 modules takes milliseconds to walk.

## How it is detected
At least 100 frames a step of the walking methods of `torch/nn/modules/module.py`, together 0.5 % of the step or more,
in most steady steps. The gain is the step replayed without these frames; the least gain leaves what recording so many
frames may have cost.

## When it does not matter
Walks of DDP, FSDP and other wrappers inside torch are theirs to avoid and are left out. A walk once an epoch is not
reported; where the device is busy all the time it is hidden.

## How to fix it
Before:

```python
for batch in loader:
    model.train()
    penalty = sum(p.norm() for name, p in model.named_parameters() if "weight" in name)
```

After:

```python
model.train()
weights = [p for name, p in model.named_parameters() if "weight" in name]
for batch in loader:
    penalty = sum(p.norm() for p in weights)
```

## References
- pytorch/pytorch#111438: attribute handling of modules took 3.6 to 5.9 % of the host's time
"""

import re
from collections.abc import Iterator

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.python_calls import matters, per_step_ns, python_calls
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

WALKS = re.compile(
    r"torch[/\\]nn[/\\]modules[/\\]module\.py\(\d+\): (train|eval|(named_)?(parameters|modules|buffers|children)"
    r"|_named_members|state_dict|_save_to_state_dict|apply|requires_grad_|to|cuda|cpu|half|float|bfloat16|_apply)$"
)
MOVES = re.compile(r"module\.py\(\d+\): (to|cuda|cpu|half|float|bfloat16|_apply)$")
WRAPPERS = re.compile(r"torch[/\\](distributed|nn[/\\]parallel|fx|_dynamo|export)[/\\]")
LEAST_CALLS = 100
LEAST_SHARE = 0.005


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that walks."""
    found = python_calls(facts, lambda name: WALKS.search(name) is not None)
    if not len(found):
        return
    wrappers = FramesAround.named(facts, lambda name: WRAPPERS.search(name) is not None, Kind.PYTHON)
    moved = FramesAround.named(facts, lambda name: MOVES.search(name) is not None, Kind.PYTHON)
    copying = found.containing(facts.partition.activities.launch[facts.partition.activities.launch >= 0])
    moving = found.tree.mask(moved.rows)[found.row]
    found = found.part(~wrappers.around(found.row) & ~(moving & copying))
    if found.calls.sum() < LEAST_CALLS * len(facts.get(steady)):
        return
    for place in few_places(facts, found.row):
        here = found.part(place.chosen)
        calls = int(here.calls.sum()) / len(facts.get(steady))
        if not matters(facts, here.total_ns, LEAST_SHARE):
            continue
        yield Suspect(
            title=f"Walks over the model's modules take {time_text(per_step_ns(facts, here.total_ns))} a "
            f"step{place.at}: {calls:.4g} calls",
            rows=here.row,
            where=place.where,
            change=here.gone(),
            cautious=here.gone_but_recording(),
            fix=f"Keep the list of parameters or modules that is needed{place.at} in a variable outside the loop, and "
            "set the mode once: `if not model.training: model.train()`.",
            reason="frames of methods that visit every module; the least gain leaves what recording them may have cost",
        )


RULE = Rule("module-tree-walk", Family.PAUSE, check, frozenset({Need.STACKS}))
