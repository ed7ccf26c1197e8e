"""Warnings, logging and prints in every step.

## What it finds
`warnings.warn`, the `logging` module, `print`, TensorBoard and Weights & Biases called inside the step for 1 % of its
time or more.

## Why it is slow
A warning that is shown reads the source line from disk and writes to a terminal; a log record is formatted and written
under a lock; a histogram copies whole tensors to the host. The host does all of it before it issues the next operator.

## How it is detected
Frames of these libraries on a thread that also calls operators, in most steady steps, of at least 1 % of their time.
The gain is the step replayed without them; the least gain leaves what recording their frames may have cost.

## When it does not matter
Logging every 50 steps is not reported, nor is what a library writes in a thread of its own. What is read from the
device to be logged is another rule's: `sync-print-log-tensor`.

## How to fix it
Before:

```python
for number, batch in enumerate(loader):
    loss = step(batch)
    logger.info("step %d: %s", number, describe(model))
```

After:

```python
for number, batch in enumerate(loader):
    loss = step(batch)
    if number % 50 == 0:
        logger.info("step %d: %s", number, describe(model))
```

## References
- Lightning-AI/pytorch-lightning#7093: logging every 23rd step closed most of a gap of 1.5
- Lightning-AI/pytorch-lightning#10660
"""

import re
from collections.abc import Iterator

import numpy as np

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.python_calls import PythonCalls, matters, per_step_ns, python_calls
from torchdiag.trace.vocabulary import Kind

LOGS = re.compile(
    r"(^|[/\\])warnings\.py\(\d+\): (warn|warn_explicit|showwarning|_showwarnmsg|_showwarnmsg_impl|formatwarning)$"
    r"|(^|[/\\])logging[/\\]\w+\.py\(\d+\): (debug|info|warning|warn|error|exception|critical|log|_log|handle|emit)$"
    r"|(^|[/\\])(torch[/\\]utils[/\\]tensorboard|tensorboardX|wandb|mlflow|loguru|comet_ml|neptune)[/\\]"
    r"|^<built-in (function|method) (warn|print)( of [^>]*)?>$"
)
KINDS = (
    ("warnings", re.compile(r"warnings\.py|<built-in (function|method) warn")),
    ("logging", re.compile(r"logging[/\\]|loguru")),
    ("print", re.compile(r"<built-in (function|method) print")),
    ("experiment tracking", re.compile(r".")),
)
LEAST_SHARE = 0.01


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that warns or logs."""
    trace = facts.trace
    found = python_calls(facts, lambda name: LOGS.search(name) is not None)
    threads = np.bincount(trace.track[trace.kind == Kind.OPERATOR], minlength=len(trace.tracks)) > 0
    found = found.part(threads[trace.track[found.row]])
    for place in few_places(facts, found.row):
        here = found.part(place.chosen)
        if not matters(facts, here.total_ns, LEAST_SHARE):
            continue
        yield Suspect(
            title=f"{_kinds(here)} {place.how_often}{place.at}: {time_text(per_step_ns(facts, here.total_ns))} a step",
            rows=here.row,
            where=place.where,
            change=here.gone(),
            cautious=here.gone_but_recording(),
            fix=f"Do it every so many steps{place.at}, or cure what is warned of; log plain numbers, from a thread of "
            "its own (logging.handlers.QueueHandler).",
            reason="frames of warnings, logging or tracking libraries in every step; the least gain leaves what "
            "recording them may have cost",
        )


def _kinds(here: PythonCalls) -> str:
    names = {here.trace.names[code] for code in here.trace.name[here.row].tolist()}
    told = {next(kind for kind, pattern in KINDS if pattern.search(name)) for name in names}
    return " and ".join(sorted(told)).capitalize()


RULE = Rule("warning-logging-hot-path", Family.PAUSE, check, frozenset({Need.STACKS}))
