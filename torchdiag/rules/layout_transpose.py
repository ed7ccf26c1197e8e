"""Convolutions convert between memory layouts.

## What it finds
Kernels that only turn NCHW into NHWC or back, around convolutions.

## Why it is slow
Tensor-core convolutions want NHWC. When the tensors lie in NCHW, the library converts before and after each of them.

## How it is detected
Kernels named `nchwToNhwc`, `nhwcToNchw`, `genericTranspose` or `batched_transpose` with a twentieth of the kernels'
time or more. The gain replays the step without them; at least half of them are taken to be avoidable, none in FP32.

## When it does not matter
In FP32 and for depthwise convolutions `channels_last` can be slower. One operator without NHWC support in the middle
brings the conversions back.

## How to fix it
Before:

```python
model = model.cuda()
```

After:

```python
model = model.cuda().to(memory_format=torch.channels_last)
x = x.to(memory_format=torch.channels_last)
```

## References
- ROCm/FlyDSL#993: 17.4 % of an encoder, 992 transposes
- ROCm/MIOpen#2001
- ultralytics/ultralytics#13179
"""

from collections.abc import Iterator

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.kernel_names import Arithmetic, Sort, arithmetic, sorts
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

SHARE = 0.05


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all conversions."""
    found = facts.get(kernels).compute()
    slow = found.part(sorts(found) == Sort.LAYOUT)
    share = float(slow.dur_ns.sum()) / max(float(found.dur_ns.sum()), 1.0)
    if share < SHARE:
        return
    single = float(slow.dur_ns[arithmetic(slow) == Arithmetic.FP32].sum()) > float(slow.dur_ns.sum()) / 2
    where = facts.get(whereabouts).most(slow.call[slow.call >= 0])
    yield Suspect(
        title=f"Conversions between NCHW and NHWC take {100 * share:.0f} % of the kernels' time, "
        f"{len(slow) / len(facts.get(steady)):.4g} a step",
        rows=slow.row,
        where=where,
        change=Change(removed=slow.row),
        cautious=Change(scaled=slow.row, device_scale=1.0 if single else 0.5),
        fix="Put model and input into channels_last: .to(memory_format=torch.channels_last); look for operators that "
        "fall back with is_contiguous(memory_format=torch.channels_last).",
        reason="kernels that only change the layout; that all of them go is assumed"
        + (", but convolutions in FP32 may be slower in channels_last" if single else ""),
        confidence="low" if single else "medium",
    )


RULE = Rule("layout-transpose", Family.KERNEL, check, frozenset({Need.DEVICE}))
