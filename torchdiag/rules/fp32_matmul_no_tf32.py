"""Matrix products run in full FP32 on a GPU that has TF32.

## What it finds
Large `float32` matrix products on an NVIDIA GPU of compute capability 8 or more that do not use the tensor cores.

## Why it is slow
An A100 multiplies 19.5 TFLOP/s in FP32 and 156 in TF32. PyTorch leaves TF32 off for matrix products unless told.

## How it is detected
Kernels of `aten::mm`, `addmm`, `bmm` whose names say FP32 (`sgemm`, `ffma`, `f32f32_f32f32`) and not TF32, with a tenth
of the kernels' time or more. Products with a vector are left out, and those that only compute in FP32 what is stored in
half precision. The gain replays the step with these kernels 2.5 times as fast on GPUs of data centres and 1.2 times on
others, between nothing and four (two) times.

## When it does not matter
TF32 keeps ten bits of the mantissa: scientific code may need all of FP32. Small products are bound by memory or by
their launch and win nothing. Convolutions use TF32 already unless that was switched off.

## How to fix it
Before:

```python
model(x)
```

After:

```python
torch.set_float32_matmul_precision("high")  # or torch.backends.cuda.matmul.fp32_precision = "tf32"
model(x)
```

Compare the loss curves before you keep it.

## References
- pytorch/pytorch#67384: why the default is off
- pytorch/pytorch#61890: about twice as fast at best, end to end
- mittagessen/kraken#505: no difference
- torchmd/torchmd-net#327: turned off for its accuracy
"""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.gpu import gpu
from torchdiag.timeline.facts.kernel_names import Arithmetic, Sort, arithmetic, sorts
from torchdiag.timeline.facts.kernels import Kernels, kernels
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace import classify
from torchdiag.trace.columns import NO_TEXT

SHARE, BIG_NS = 0.1, 10_000
DATACENTER, OTHERS = (2.5, 4.0), (1.2, 2.0)
PRODUCTS = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_addmm_activation"})
VECTOR = re.compile(r"gemv|gemmk1|fp16_sgemm")
"""Products that read each weight once, bound by memory; and those whose operands are in half precision."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all matrix products in FP32."""
    device, found = facts.get(gpu), facts.get(kernels).compute()
    if not device.tf32 or not len(found):
        return
    slow = found.part((sorts(found) == Sort.GEMM) & (arithmetic(found) == Arithmetic.FP32))
    slow = slow.part(~slow.named(lambda name: VECTOR.search(name) is not None) & _products(facts, slow))
    share = float(slow.dur_ns.sum()) / max(float(found.dur_ns.sum()), 1.0)
    if share < SHARE or not len(slow) or float(slow.dur_ns.mean()) < BIG_NS:
        return
    expected, most = DATACENTER if device.datacenter else OTHERS
    yield Suspect(
        title=f"FP32 matrix products without TF32 take {100 * share:.0f} % of the kernels' time, "
        f"{len(slow) / len(facts.get(steady)):.4g} kernels a step",
        rows=slow.row,
        where=facts.get(whereabouts).most(slow.call[slow.call >= 0]),
        change=Change(scaled=slow.row, device_scale=1 / expected),
        cautious=Change(scaled=slow.row, device_scale=1.0),
        hopeful=Change(scaled=slow.row, device_scale=1 / most),
        fix='Call torch.set_float32_matmul_precision("high") before the first step, if ten bits of mantissa are enough '
        "for this model; compare its results.",
        reason=f"names of the kernels say FP32; {device.name} is assumed to do TF32 {expected} times as fast",
        confidence="medium",
    )


def _products(facts: Facts, found: Kernels) -> NDArray[np.bool_]:
    """bool[k]: those of products of `float` matrices; those without an operator or without types, too."""
    trace, rows = facts.trace, found.operator
    named = np.ones(len(found), np.bool_)
    known = np.flatnonzero(rows >= 0)
    named[known] = classify.by_name(trace, rows[known], PRODUCTS.__contains__) != 0
    floats = np.append(trace.texts.codes_where(lambda text: '"float"' in text), True)  # the last is for NO_TEXT
    named[known] &= floats[trace.args.input_types.at(rows[known], NO_TEXT)]
    return named


RULE = Rule("fp32-matmul-no-tf32", Family.KERNEL, check, frozenset({Need.DEVICE}))
