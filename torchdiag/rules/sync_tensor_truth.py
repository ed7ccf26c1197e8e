"""Python decides by a tensor that lives on the device.

## What it finds
`if mask.any():`, `while error > eps:`, `assert torch.isfinite(x).all()`, `torch.equal(a, b)`: a condition whose answer
the device has yet to compute. So do checks within torch: argument validation of `torch.distributions`, error checks of
`torch.linalg`, the probabilities of `multinomial` in older versions.

## Why it is slow
Python cannot go on without the answer. The host waits until the device has worked off its queue, and the device then
idles while the next operators are issued.

## How it is detected
A waiting call inside `aten::is_nonzero`, `aten::equal`, `aten::allclose` (or the checks above) at one line in at least
80 % of the steady steps. Conditions on the norm of gradients, and finite checks made many times a step, have rules of
their own. The gain is the step replayed without these waits.

## When it does not matter
Conditions on CPU tensors wait for nothing. A loop that converges needs its condition now and then: check it every k
iterations. With a device that is busy all the time the finding is latent.

## How to fix it
Before:

```python
if row_mask.any():
    scores = scores.masked_fill(row_mask, 0.0)
```

After:

```python
scores = scores.masked_fill(row_mask, 0.0)  # the same where nothing is masked
```

## References
- lucidrains/x-transformers#355: a test whether any row is masked stalls every layer
- pytorch/pytorch#60691: three conditions in one call of clip_grad_norm_
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.nesting import operators
from torchdiag.timeline.facts.wait_reasons import TRUTH_FRAME, Reason
from torchdiag.timeline.facts.waiting_lines import WaitingLine, waiting_lines
from torchdiag.trace.vocabulary import Kind

ADVICE = {
    "aten::_linalg_check_errors": "Call the `_ex` form of the torch.linalg function with check_errors=False{at}, and "
    "look at its `info` on logging steps.",
    "aten::multinomial": "Sample without the check of the probabilities{at}: "
    "`(p / torch.empty_like(p).exponential_()).argmax(-1)` draws one index a row.",
    "aten::equal": "Compare on the device with `(a == b).all()`{at} and keep the flag there, or compare on logging "
    "steps only.",
    "aten::allclose": "Compare on the device with `torch.isclose(a, b).all()`{at} and keep the flag there, or compare "
    "on logging steps only.",
}
GENERAL = (
    "Do it unconditionally{at} (`torch.where`, `masked_fill`, `clamp`), keep the flag on the device, or replace an "
    "assertion by `torch._assert_async`; a loop that must converge can be checked every k iterations."
)


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that decides by a tensor of the device."""
    for line in waiting_lines(facts, Reason.TRUTH):
        yield Suspect(
            title=f"A decision by a tensor on the device makes the host wait {line.often}{line.at}",
            rows=line.waits.row,
            where=line.where,
            change=Change(unblocked=line.waits.calls),
            fix=_fix(facts, line).format(at=line.at),
            reason=f"`{line.operator}` waits for the value it tests",
        )


def _fix(facts: Facts, line: WaitingLine) -> str:
    validating = FramesAround.named(facts, lambda name: bool(TRUTH_FRAME.search(name)), Kind.PYTHON)
    if np.all(validating.around(line.waits.row)):
        return "Build the distribution with validate_args=False{at}: it checks its arguments by value."
    for name, advice in ADVICE.items():
        if np.all(line.waits.inside(facts, operators(facts.trace, name))):
            return advice
    return GENERAL


RULE = Rule("sync-tensor-truth", Family.SYNC, check, frozenset({Need.DEVICE}))
