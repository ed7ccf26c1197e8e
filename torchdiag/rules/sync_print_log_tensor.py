"""Tensors on the device are printed, listed or fetched whole in every step.

## What it finds
`print(loss)`, `f"{loss:.3f}"`, a progress bar that is given tensors, `values.tolist()`, and `values.cpu()` for whatever
the host does with them.

## Why it is slow
The text needs the values, so the host waits for the device; printing a tensor of many elements runs a dozen small
operators besides, each with a wait of its own, to find out how to align the digits.

## How it is detected
Waits inside the functions of `torch/_tensor_str.py`, inside `__repr__`, `__str__` or `__format__` of
`torch/_tensor.py`, or inside `tolist`; and waits for copies of 17 bytes to 1 MiB to the host from which nothing comes
back. At one line, in at least 80 % of the steady steps. The gain is the step replayed without these waits; at most,
without the printing.

## When it does not matter
Prints outside of the steps, or on every N-th one, are not reported.

## How to fix it
Before:

```python
bar.set_postfix(loss=f"{loss:.3f}")
```

After:

```python
if step % 50 == 0:
    bar.set_postfix(loss=f"{loss:.3f}")
```

## References
- ourownstory/neural_prophet#952: training took 5.2 minutes, and 1.3 without the rich progress bar
- Lightning-AI/pytorch-lightning#7093: logging every 23rd step closed part of a gap of 1.5 times
"""

import re
from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.copies import copies
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.nesting import nesting
from torchdiag.timeline.facts.wait_reasons import PRINT_FRAME, Reason
from torchdiag.timeline.facts.waiting_lines import waiting_lines
from torchdiag.trace.vocabulary import Kind

TO_LIST = re.compile(r"^<built-in method tolist of ")
LIST = (
    "Keep a copy of these values on the host from where they are made{at}, or keep computing with the tensor; for "
    "logging, list it every N steps."
)
PRINT = "Print every N steps{at}, or format a value that was copied to a pinned buffer one step earlier."
FETCH = (
    "Keep it on the device and reduce it there, or collect results and fetch them every N steps{at}; else copy into a "
    "pinned buffer with non_blocking=True, record a torch.cuda.Event, and read it one step later."
)


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that prints, lists or fetches a tensor of the device."""
    lists = FramesAround.named(facts, lambda name: bool(TO_LIST.search(name)), Kind.PYTHON)
    printing = FramesAround.named(facts, lambda name: bool(PRINT_FRAME.search(name)), Kind.PYTHON)
    tree = facts.get(nesting)
    for line in waiting_lines(facts, Reason.PRINT):
        listed = bool(np.all(lists.around(line.waits.row)))
        frames = np.unique(tree.outermost(line.waits.row, tree.mask(printing.rows)))
        what, fix = ("Turning a tensor on the device into a list", LIST) if listed else ("Printing a tensor", PRINT)
        yield Suspect(
            title=f"{what} makes the host wait {line.often}{line.at}",
            rows=line.waits.row,
            where=line.where,
            change=Change(unblocked=line.waits.calls),
            hopeful=Change(unblocked=line.waits.calls, shortened=frames[frames >= 0]),
            fix=fix.format(at=line.at),
            reason="the values are needed on the host at once; at most the whole call goes",
        )
    for line in waiting_lines(facts, Reason.FETCHED):
        size = facts.get(copies).size_bytes[line.waits.copy]
        yield Suspect(
            title=f"Fetching {_spelled(int(size.max()))} from the device makes the host wait {line.often}{line.at}",
            rows=line.waits.row,
            where=line.where,
            change=Change(unblocked=line.waits.calls),
            fix=FETCH.format(at=line.at),
            reason="a tensor is copied to the host, which waits for it, and nothing comes back",
        )


def _spelled(size_bytes: int) -> str:
    if size_bytes < 0:
        return "a tensor"
    return f"{size_bytes} bytes" if size_bytes < 1024 else f"up to {size_bytes / 1024:.3g} KiB"


RULE = Rule("sync-print-log-tensor", Family.SYNC, check, frozenset({Need.DEVICE}))
