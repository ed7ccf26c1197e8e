"""Large matrix products and convolutions run in FP32 throughout.

## What it finds
A model whose time goes into `float32` matrix products and convolutions, without any half-precision tensor.

## Why it is slow
Tensor cores multiply bfloat16 and float16 several times as fast as FP32, and half as many bytes are moved.

## How it is detected
More than half of the kernels' time in products and convolutions on float inputs, and no operator with inputs of `Half`
or `BFloat16` nor a product in half precision. The gain replays the step with these kernels 1.5 times as fast, between
nothing and three times.

## When it does not matter
Small models and batches may get slower under autocast: the casts cost more than the products win. Training in float16
needs a scaler; bfloat16 does not.

## How to fix it
Before:

```python
loss = criterion(model(x), y)
```

After:

```python
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = criterion(model(x), y)
```

## References
- huggingface/transformers#15026: slower with mixed precision on a small model
- pytorch/pytorch#71301
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.gpu import gpu
from torchdiag.timeline.facts.kernel_names import Arithmetic, Sort, arithmetic, sorts
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.columns import NO_TEXT

SHARE, BIG_NS = 0.5, 20_000
EXPECTED, MOST = 1.5, 3.0


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all products and convolutions in FP32."""
    device, found = facts.get(gpu), facts.get(kernels).compute()
    old = device.capability is not None and device.capability < (7, 0)
    if old or not len(found) or _has_half(facts):
        return
    kind = sorts(found)
    product, with_what = np.isin(kind, (Sort.GEMM, Sort.CONVOLUTION)), arithmetic(found)
    slow = found.part(product & np.isin(with_what, (Arithmetic.FP32, Arithmetic.TF32)))
    share = float(slow.dur_ns.sum()) / max(float(found.dur_ns.sum()), 1.0)
    if share <= SHARE or float(slow.dur_ns.mean()) < BIG_NS or np.any(product & (with_what == Arithmetic.HALF)):
        return
    kept = device.capability is None or device.capability >= (8, 0)
    dtype = "torch.bfloat16" if kept else "torch.float16 (with torch.amp.GradScaler)"
    yield Suspect(
        title=f"FP32 products and convolutions take {100 * share:.0f} % of the kernels' time, and nothing runs in half "
        "precision",
        rows=slow.row,
        change=Change(scaled=slow.row, device_scale=1 / EXPECTED),
        cautious=Change(scaled=slow.row, device_scale=1.0),
        hopeful=Change(scaled=slow.row, device_scale=1 / MOST),
        fix='Run the forward pass and the loss under torch.autocast("cuda", dtype='
        f"{dtype}), and compare results and step time ({len(slow) / len(facts.get(steady)):.4g} kernels a step are "
        "concerned).",
        reason=f"these kernels are assumed to run {EXPECTED} times as fast in half precision",
        confidence="low",
    )


def _has_half(facts: Facts) -> bool:
    column = facts.trace.args.input_types
    half = facts.trace.texts.codes_where(lambda text: "Half" in text or "BFloat16" in text)
    return bool(half[column.values[column.values != NO_TEXT]].any())


RULE = Rule("no-mixed-precision", Family.KERNEL, check, frozenset({Need.DEVICE, Need.SHAPES}))
