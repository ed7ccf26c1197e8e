"""Attributes that are not there are looked up in every step, at a price.

## What it finds
`hasattr(x, ...)` or `getattr(x, ...)` in the step that end in a `__getattr__` which takes long: one that formats a
whole model into its message, searches many places, or makes C++ raise with a backtrace.

## Why it is slow
A missing attribute is an exception. Its message is built before anybody knows that nobody will read it: the `repr` of a
model of 500 modules takes milliseconds.

## How it is detected
`__getattr__` frames with a `__repr__`, `__str__` or `extra_repr` inside, or of 50 us or more without any operator in
them, in most steady steps. The gain is the step replayed without them; the least gain leaves what recording their
frames may have cost.

## When it does not matter
Each parameter and submodule of an `nn.Module` is found by `__getattr__`: lookups that succeed take about a microsecond
and are not reported.

## How to fix it
Before:

```python
def __getattr__(self, name):
    if not hasattr(self.model, name):
        raise AttributeError(f"no {name} in {self.model}")
    return getattr(self.model, name)
```

After:

```python
def __getattr__(self, name):
    if name == "model":
        return super().__getattr__(name)
    return getattr(self.model, name)  # raises by itself, with a short message
```

Better still, ask once in `__init__` and keep the answer.

## References
- pytorch/pytorch#111438: probing operators that are not there took 3.6 to 5.9 % of CPU time, in C++ backtraces
- pytorch/pytorch#122086
- pytorch/pytorch#125787
- python/cpython#104066
"""

import re
from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.nesting import named
from torchdiag.timeline.facts.python_calls import matters, per_step_ns, python_calls
from torchdiag.trace.vocabulary import Kind

LOOKUPS = re.compile(r"\(\d+\): __getattr__$")
FORMATS = re.compile(r"\(\d+\): (__repr__|__str__|extra_repr|__format__)$")
SLOW_NS = 50_000
LEAST_SHARE = 0.001


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that asks for what is not there."""
    trace = facts.trace
    found = python_calls(facts, lambda name: LOOKUPS.search(name) is not None)
    formatting = found.containing(named(trace, Kind.PYTHON, lambda name: FORMATS.search(name) is not None))
    working = found.containing(np.flatnonzero(trace.kind == Kind.OPERATOR))
    found = found.part(formatting | ((trace.dur_ns[found.row] >= SLOW_NS) & ~working))
    for place in few_places(facts, found.row):
        here = found.part(place.chosen)
        if not matters(facts, here.total_ns, LEAST_SHARE):
            continue
        single = time_text(here.total_ns / len(here))
        cause = " to format a message" if formatting.any() else ""
        yield Suspect(
            title=f"Looking up an attribute that is missing takes {single}{cause}, {place.how_often}{place.at} "
            f"({time_text(per_step_ns(facts, here.total_ns))})",
            rows=here.row,
            where=place.where,
            change=here.gone(),
            cautious=here.gone_but_recording(),
            fix=f"Look it up once before the loop and keep the answer{place.at}; let __getattr__ raise a short message "
            "that formats no model.",
            reason="__getattr__ frames that format objects or take long; the least gain leaves what recording their "
            "frames may have cost",
            confidence="high" if formatting.any() else "medium",
        )


RULE = Rule("attr-miss-exception", Family.PAUSE, check, frozenset({Need.STACKS}))
