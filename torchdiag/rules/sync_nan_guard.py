"""Many checks for infinities and NaNs are read back on the spot.

## What it finds
`if not torch.isfinite(p.grad).all(): ...` for every parameter, bucket or layer: in a loop over the parameters, or in
hooks that run during the backward pass.

## Why it is slow
Each check waits until the device has computed the tensor it looks at. In hooks that stops the thread that issues the
backward pass, once a parameter, and the device runs dry each time.

## How it is detected
Reads (`aten::is_nonzero`, `aten::item`) within three operators after `aten::isfinite`, `aten::isnan` or `aten::isinf`,
with a waiting call inside: three or more of them in a step, or inside the backward pass. Fewer are ordinary decisions
by a tensor (`sync-tensor-truth`). The gain is the step replayed without all of these waits.

## When it does not matter
Anomaly mode makes checks that look alike; they are reported by its own rule. A gradient scaler checks all gradients in
one fused operator and reads one flag.

## How to fix it
Before:

```python
for p in model.parameters():
    if not torch.isfinite(p.grad).all():
        raise RuntimeError("gradients overflow")
```

After:

```python
grads = [p.grad for p in model.parameters()]
finite = torch.isfinite(torch.stack(torch._foreach_norm(grads))).all()  # one flag, on the device
if step % 50 == 0 and not finite:
    raise RuntimeError("gradients overflow")
```

## References
- NVIDIA/Megatron-LM#7076: 74 of 142 waits an iteration came from one validator of gradient buckets
"""

from collections.abc import Iterator

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.wait_reasons import Reason
from torchdiag.timeline.facts.waiting_lines import waiting_lines


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that checks tensors for infinities and NaNs one by one."""
    for line in waiting_lines(facts, Reason.FINITE):
        yield Suspect(
            title=f"Checks for infinities and NaNs make the host wait {line.often}{line.at}",
            rows=line.waits.row,
            where=line.where,
            change=Change(unblocked=line.waits.calls),
            fix=f"Combine the flags on the device{line.at} (one `torch.isfinite` of the stacked "
            "`torch._foreach_norm`), and read the one flag a step later or on logging steps.",
            reason="each check is read as soon as it is made",
        )


RULE = Rule("sync-nan-guard", Family.SYNC, check, frozenset({Need.DEVICE}))
