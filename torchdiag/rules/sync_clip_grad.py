"""Clipping the gradients waits for their norm.

## What it finds
A decision in Python by the norm of the gradients, between the backward pass and the optimizer's step:
`clip_grad_norm_(..., error_if_nonfinite=True)`, the conditions that versions before 1.10 always made, and code of one's
own (`if norm > limit:`, `total += p.grad.norm().item() ** 2`).

## Why it is slow
The host waits for the whole backward pass just when it should be issuing the optimizer's many kernels; the device idles
until they arrive.

## How it is detected
Waits inside `torch/nn/utils/clip_grad.py`; or, between the last node of the backward pass and the `Optimizer.step#`
annotation of the same step, a condition (`aten::is_nonzero`) soon after a norm, or several norms of which each is read
at once. The gain is the step replayed without these waits.

## When it does not matter
What clips today without options (norms, `stack`, `clamp`, a multiplication) decides on the device and waits for
nothing. A logger that reads the total norm afterwards is reported as such, by `sync-item-scalar`.

## How to fix it
Before:

```python
norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
```

After:

```python
norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)  # read `norm` on logging steps
```

## References
- pytorch/pytorch#60691: three values were read from the device in each call
- pytorch/pytorch#61042: made the check for finite norms an option
- deepmodeling/deepmd-kit#5519
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.wait_reasons import CLIP_FRAME, Reason
from torchdiag.timeline.facts.waiting_lines import waiting_lines
from torchdiag.trace.vocabulary import Kind

TORCH = (
    "Call clip_grad_norm_ without error_if_nonfinite=True{at}; it then clips on the device. Read the norm on logging "
    "steps."
)
OWN = (
    "Use `torch.nn.utils.clip_grad_norm_(parameters, limit, foreach=True)`{at}, or `get_total_norm` and "
    "`clip_grads_with_norm_`: they scale by `clamp` on the device instead of deciding in Python."
)


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that decides by the norm of the gradients."""
    library = FramesAround.named(facts, lambda name: bool(CLIP_FRAME.search(name)), Kind.PYTHON)
    for line in waiting_lines(facts, Reason.CLIP):
        by_torch = bool(np.all(library.around(line.waits.row)))
        yield Suspect(
            title=f"Clipping the gradients makes the host wait for their norm {line.often}{line.at}",
            rows=line.waits.row,
            where=line.where,
            change=Change(unblocked=line.waits.calls),
            fix=(TORCH if by_torch else OWN).format(at=line.at),
            reason="the host reads a norm before the optimizer's step",
            confidence="high" if by_torch else "medium",
        )


RULE = Rule("sync-clip-grad", Family.SYNC, check, frozenset({Need.DEVICE}))
