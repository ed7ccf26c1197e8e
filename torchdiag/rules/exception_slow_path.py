"""Exceptions are thrown and caught in every step.

## What it finds
Python or C++ exceptions that are raised and handled inside the step, as part of how the program, or torch, takes its
way.

## Why it is slow
A C++ exception unwinds the stack frame by frame through the tables of every library, and torch formats a message and a
backtrace for it first: tens of microseconds each. A Python exception costs a microsecond or more for each frame it
passes. Both stop the thread that feeds the device, and no profiler shows them.

## How it is detected
From what torchdiag records beside the profiler: exceptions of one type and place in most steady steps, 0.5 % of the
step or more. Of C++ exceptions the gain is the step replayed without the time from each throw to its catch and without
the operators that ended by them, of which nothing came. At least the former is won; at most also what comes between
such an operator and the next event of its thread, in which the message is made and Python raises, unwinds and handles.
Of Python exceptions the recorder tells a time in which it has a large part itself: one that passes frames takes 42 to
190 times as long while it is followed, so that the gain is an estimate, with half and twice of it as bounds. Where the
recording of the trace has no single exceptions, the counts of the run's own pass over exceptions are spread over the
step.

## When it does not matter
A few exceptions of some microseconds (a dictionary asked with `try`) are left out. Iteration ends by an exception in
Python; those are not counted.

## How to fix it
Before:

```python
for x in batches:
    try:
        y = fast_path(x)
    except RuntimeError:  # always: x is not contiguous
        y = slow_path(x)
```

After:

```python
for x in batches:
    y = fast_path(x) if x.is_contiguous() else slow_path(x)
```

Of exceptions thrown inside torch's own operators: find the argument that the first of several overloads refuses.

## References
- pytorch/pytorch#111438: probing operators that are not there took 3.6 to 5.9 % of CPU time
- pytorch/pytorch#87855
- quantized ResNet-50 on torch 2.14: 108 C++ exceptions a step, two in each of 54 quantized operators
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.thrown import Thrown, thrown
from torchdiag.timeline.facts.whereabouts import Where
from torchdiag.timeline.frames import LINE

LEAST_SHARE = 0.005
PLACES = 5
PROBES = frozenset({"torch::jit::ObjectAttributeError", "pybind11::error_already_set"})
"""What script objects throw that are asked for attributes they do not have."""
RECORD = "seen by the recorder of exceptions in every step"


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a type and place, the longest first."""
    step_ns = facts.get(steady).step_ns
    for item in [item for item in facts.get(thrown) if item.step_ns >= LEAST_SHARE * step_ns][:PLACES]:
        where = _where(item)
        by = f" by {item.operators}" if item.operators else f" at {where.label}" if where.label else ""
        language = "C++" if item.cpp else "Python"
        often = f"{item.per_step:.3g} {language} exceptions ({item.name})" if item.per_step != 1 else (
            f"One {language} exception ({item.name})"
        )  # fmt: skip
        yield Suspect(
            title=f"{often} thrown and caught in a step{by}, {time_text(item.step_ns)} of it",
            rows=item.rows,
            where=where,
            change=_without(facts, item, item.step_ns),
            cautious=_without(facts, item, item.least_ns),
            hopeful=_without(facts, item, item.most_ns),
            fix=_fix(item, where),
            reason=_reason(item),
            confidence="medium" if item.counted or not item.cpp else "high",
        )


def _without(facts: Facts, item: Thrown, amount_ns: float) -> Change:
    """The step with `amount_ns` (`least_ns`, `step_ns` or `most_ns`) less of these exceptions."""
    times = facts.get(steady)
    if item.counted and len(item.handled):
        free_ns = float((item.handled[:, 2] - item.handled[:, 1]).sum()) / len(times)
        return Change(pieces=item.handled, host_scale=max(1 - amount_ns / free_ns, 0.0) if free_ns else 1.0)
    if item.counted:
        return Change(shortened=item.rows, host_scale=max(1 - amount_ns / times.step_ns, 0.0))
    if item.cpp:
        failed = item.failed if amount_ns > item.least_ns else item.failed[:0]
        handled = item.handled if amount_ns > item.step_ns else item.handled[:0]
        return Change(shortened=np.concatenate((item.rows, failed)), pieces=handled)
    told = float(np.maximum(facts.trace.dur_ns[item.rows], 0).sum()) / len(times)
    return Change(shortened=item.rows, host_scale=max(1 - amount_ns / told, 0.0) if told else 1.0)


def _reason(item: Thrown) -> str:
    took = (
        "the time from throw to catch and of the operators that ended by them"
        if len(item.failed)
        else "the time from throw to catch"
        if item.cpp
        else "the time from raise to handler, less what recording adds by experience"
    )
    spread = ", counted in a pass of its own and spread over the step" if item.counted else ""
    return f"{RECORD}; {took}{spread}"


def _fix(item: Thrown, where: Where) -> str:
    if item.cpp:
        if item.name in PROBES and "::" in item.operators and not item.operators.startswith("aten::"):
            return (
                f"torch's Python binding asks the object that {item.operators} takes (packed weights) for an attribute "
                "it lacks, in every call: try the model exported or traced, or quantised with torchao, where none of "
                "these calls comes from Python."
            )
        who = f"in {item.operators}" if item.operators else "in torch"
        return (
            f"Find what is refused {who} (run one call in a debugger with `catch throw`): pass arguments that the "
            "first of the overloads takes, and keep the answer of a probe rather than asking in every step."
        )
    at = f" at {where.label}" if where.label else ""
    return f"Ask before trying{at}: test the condition that raises {item.name}, or try once before the loop."


def _where(item: Thrown) -> Where:
    if item.cpp:
        first = item.operators.split(", ")[0]
        return Where(operator=first or None)
    parts = (item.handled_at or item.raised_at).rsplit(":", 2)
    if len(parts) != 3 or not LINE.fullmatch(parts[1]):
        return Where()
    return Where(file=parts[0], line=int(parts[1]), function=parts[2].rpartition(".")[2])


RULE = Rule("exception-slow-path", Family.PAUSE, check)
