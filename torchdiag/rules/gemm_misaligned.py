"""Matrix products with odd sizes miss the fast kernels.

## What it finds
Matrix products on tensor cores with a dimension that is no multiple of 8 (of 4 in TF32), such as a vocabulary of 50257,
served by kernels for unaligned data.

## Why it is slow
Tensor cores load 16 bytes at a time. Where rows do not begin at such an address, the library falls back to kernels that
load less at once, often of an older generation.

## How it is detected
`aten::mm`, `addmm`, `bmm` in half precision with a dimension that is no multiple of 8, or in TF32 with one that is no
multiple of 4, whose kernels' names say `align1` or `align2` (on AMD, whose names do not tell, only a last dimension
counts), with 2 % of the kernels' time or more. Where aligned products of a similar size run in the same trace, the gain
is computed from their measured rate; else these kernels are assumed to become 1.35 times as fast.

## When it does not matter
Tiny products. Inductor pads by itself.

## How to fix it
Before:

```python
self.head = nn.Linear(768, 50257)
```

After:

```python
self.head = nn.Linear(768, 50304)  # padded to a multiple of 64; the extra logits are never chosen
```

## References
- PaddlePaddle/models#5134: 14 ms became 10
- tensorflow/models#7407: 35 ms a step
- intel/torch-xpu-ops#1129: 30 % of GPT-2 in float16
- facebookresearch/ParlAI#2167: no difference
"""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import Shape, elements, inputs
from torchdiag.timeline.facts.kernel_names import Arithmetic, Sort, arithmetic, sorts
from torchdiag.timeline.facts.kernels import Kernels, kernels
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace import classify

SHARE, FASTER, SIMILAR = 0.02, 1.35, 4.0
MULTIPLE, TF32_MULTIPLE = 8, 4
"""Elements in 16 bytes of half precision, and of TF32."""
MOST_FLOPS = 1 << 62
"""What a trace claims beyond this is no number of operations."""
UNALIGNED = re.compile(r"align[12](?!\d)")
"""Kernels for unaligned data; AMD's do not tell by their name."""
PRODUCTS = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"})


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all unaligned products."""
    trace, every = facts.trace, facts.get(kernels).compute()
    launched = every.part(every.operator >= 0)
    launched = launched.part(classify.by_name(trace, launched.operator, PRODUCTS.__contains__) != 0)
    with_what = arithmetic(launched)
    cores = (with_what == Arithmetic.HALF) | (with_what == Arithmetic.TF32)
    launched = launched.part((sorts(launched) == Sort.GEMM) & cores)
    if not len(launched):
        return
    _, first, same = np.unique(facts.get(inputs).codes(launched.operator), return_index=True, return_inverse=True)
    distinct = launched.operator[first].tolist()
    flops = np.array([_flops(facts, row) for row in distinct])[same]
    aligned = np.where(arithmetic(launched) == Arithmetic.TF32, TF32_MULTIPLE, MULTIPLE)
    sizes = [_sizes(facts, row) for row in distinct]
    pairs: list[tuple[int, int]] = list(zip(same.tolist(), aligned.tolist(), strict=True))
    odd = np.array([_odd(sizes[shape], multiple) != [] for shape, multiple in pairs], np.bool_)
    last = np.array([_odd(sizes[shape][:2], MULTIPLE) != [] for shape, _ in pairs], np.bool_)
    unaligned = odd & launched.named(lambda name: UNALIGNED.search(name) is not None)
    unaligned |= last & launched.named(lambda name: name.startswith("Cijk_"))
    slow = launched.part(unaligned)
    share = float(slow.dur_ns.sum()) / max(float(every.dur_ns.sum()), 1.0)
    if share < SHARE:
        return
    faster, basis = _faster(launched, flops, unaligned, odd)
    where = facts.get(whereabouts).most(slow.call)
    shown = {pairs[index] for index in np.flatnonzero(unaligned).tolist()}
    told = sorted({size for shape, multiple in shown for size in _odd(sizes[shape], multiple)})
    multiple = int(aligned[unaligned].max())
    yield Suspect(
        title=f"Products with sizes that are no multiple of {multiple} ({', '.join(map(str, told[:3]))}) take "
        f"{100 * share:.0f} % of the kernels' time",
        rows=slow.row,
        where=where,
        change=Change(scaled=slow.row, device_scale=1 / faster),
        cautious=Change(scaled=slow.row, device_scale=1.0),
        fix=f"Pad the size{f' at {where.label}' if where.label else ''} to a multiple of 8, better 64; zero columns "
        "keep the result exact.",
        reason=f"kernels for unaligned data; {basis}",
        confidence="medium",
    )


def _faster(
    launched: Kernels, flops: NDArray[np.float64], unaligned: NDArray[np.bool_], odd: NDArray[np.bool_]
) -> tuple[float, str]:
    """How much faster aligned products of a similar size ran, and what that rests on."""
    usual = float(np.median(flops[unaligned]))
    similar = ~odd & (flops > usual / SIMILAR) & (flops < usual * SIMILAR)
    if np.any(similar) and usual > 0:
        there = flops[similar].sum() / launched.dur_ns[similar].sum()
        here = flops[unaligned].sum() / launched.dur_ns[unaligned].sum()
        if there > here:
            faster = float(there / here)
            return min(faster, 3.0), f"aligned products of similar size ran {faster:.2f} times as fast here"
    return FASTER, f"aligned ones are assumed to be {FASTER} times as fast"


def _matrices(facts: Facts, row: int) -> list[Shape]:
    return [shape for shape in facts.get(inputs).dims(row) if len(shape) >= 2][-2:]


def _sizes(facts: Facts, row: int) -> tuple[int, ...]:
    """The last dimensions of both matrices, and the rows of the first, which are last where it is transposed."""
    shapes = _matrices(facts, row)
    return (shapes[0][-1], shapes[1][-1], shapes[0][-2]) if len(shapes) == 2 else ()


def _odd(sizes: tuple[int, ...], multiple: int) -> list[int]:
    return [size for size in sizes if size % multiple and size > MULTIPLE]


def _flops(facts: Facts, row: int) -> float:
    shapes = _matrices(facts, row)
    return float(min(2 * elements(shapes[0]) * shapes[1][-1], MOST_FLOPS)) if len(shapes) == 2 else 0.0


RULE = Rule("gemm-misaligned", Family.KERNEL, check, frozenset({Need.DEVICE, Need.SHAPES}))
