"""Attention writes out its whole matrix of scores.

## What it finds
Attention made of a product, a softmax and a product (or PyTorch's own fallback for it), over sequences long enough for
the scores to matter.

## Why it is slow
The matrix of scores has length times length elements for each head. It is written and read several times, where a fused
kernel never stores it.

## How it is detected
`aten::_scaled_dot_product_attention_math`, or a softmax over the last dimension of a [..., L, L] tensor that a batched
product then takes, with no fused attention kernel in the step. The gain replays the step without the kernels that only
read and write the scores (softmax, scale, mask, dropout); the products stay. At least half of it, at most with products
twice as fast as well; it grows with L.

## When it does not matter
Below a few hundred elements a fused kernel wins next to nothing. An explicit mask rules out the flash backend; the
memory-efficient one takes it.

## How to fix it
Before:

```python
scores = (q @ k.transpose(-2, -1)) / math.sqrt(d) + mask
out = scores.softmax(-1) @ v
```

After:

```python
out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # is_causal=True rather than a dense causal mask
```

`torch.nn.attention.sdpa_kernel` tells why a backend refuses.

## References
- PKU-YuanGroup/Open-Sora-Plan#109
- cvg/LightGlue#116
- Svardfox/LaViT#4: 1.3 to 1.8 times as fast
- ZKI-PH-ImageAnalysis/seq2squiggle#2: no gain for short sequences
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import Shape, elements, inputs
from torchdiag.timeline.facts.kernel_names import Sort, sorts
from torchdiag.timeline.facts.kernels import Kernels, kernels
from torchdiag.timeline.facts.nesting import operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

LONG, SHARE = 256, 0.02
Scores = tuple[int, int]
"""How many elements scores have, and in how many columns: heads and batch may be one dimension or two."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all attention that stores its scores."""
    times, found, trace = facts.get(steady), facts.get(kernels).compute(), facts.trace
    softmax = times.rows(facts, operators(trace, "aten::_softmax", "aten::_softmax_backward_data"))
    square = {row: shape for row in softmax.tolist() if (shape := _square(facts, row))}
    math = times.rows(facts, operators(trace, "aten::_scaled_dot_product_attention_math"))
    multiplied = _multiplied(facts) if square else set[Scores]()
    scores = {row: _scores(shape) for row, shape in square.items() if _scores(shape) in multiplied}
    rows = np.array(sorted(scores), np.int64)
    if not len(rows):
        return
    slow = _on_scores(facts, found, set(scores.values()))
    share = float(slow.dur_ns.sum()) / max(float(found.dur_ns.sum()), 1.0)
    fused = found.dur_ns[sorts(found) == Sort.ATTENTION].sum()
    if share < SHARE or fused > slow.dur_ns.sum():
        return
    traffic = slow.row[sorts(slow) != Sort.GEMM]
    where = facts.get(whereabouts).most(rows)
    at = f" at {where.label}" if where.label else ""
    longest = max(square[row][-1] for row in scores)
    yield Suspect(
        title=f"Attention{at} stores its scores, up to {longest} x {longest}: kernels on them take "
        f"{100 * share:.0f} % of the kernels' time",
        rows=rows,
        where=where,
        change=Change(removed=traffic),
        cautious=Change(scaled=traffic, device_scale=0.5),
        hopeful=Change(removed=traffic, scaled=slow.row, device_scale=0.5),
        fix="Find out with torch.nn.attention.sdpa_kernel why the fused backends refuse (mask, dtype, head size), and "
        f"remove the reason{at}."
        if len(math)
        else f"Call F.scaled_dot_product_attention{at} instead of product, softmax and product; is_causal=True rather "
        "than a dense causal mask.",
        reason="that a fused form needs no kernel of its own for softmax, scale and mask is assumed",
        confidence="medium",
    )


def _square(facts: Facts, row: int) -> Shape:
    """The shape where a softmax goes over the last dimension of a long [..., L, L] or nearly so, else ()."""
    dims, concrete = facts.get(inputs).dims(row), facts.get(inputs).concrete(row)
    shape = next((item for item in dims if item), ())
    if len(shape) < 3 or shape[-1] < LONG or not 0.5 <= shape[-2] / shape[-1] <= 2:
        return ()
    axis = next((value for value in concrete if value), "-1")  # the first argument that is no tensor
    return shape if axis in ("-1", str(len(shape) - 1)) else ()


def _scores(shape: Shape) -> Scores:
    return elements(shape), shape[-1]


def _multiplied(facts: Facts) -> set[Scores]:
    """The matrices that batched products take."""
    given, products = facts.get(inputs), operators(facts.trace, "aten::bmm", "aten::baddbmm", "aten::matmul")
    _, first = np.unique(given.codes(products), return_index=True)
    return {_scores(shape) for row in products[first].tolist() for shape in given.dims(row)[:3] if len(shape) > 2}


def _on_scores(facts: Facts, found: Kernels, scores: set[Scores]) -> Kernels:
    """The kernels of operators that take tensors like the scores."""
    given = facts.get(inputs)
    launched = found.part(found.operator >= 0)
    _, first, same = np.unique(given.codes(launched.operator), return_index=True, return_inverse=True)
    distinct = launched.operator[first].tolist()
    large = [any(_scores(shape) in scores for shape in given.dims(row) if len(shape) > 2) for row in distinct]
    return launched.part(np.array(large, np.bool_)[same])


RULE = Rule("attention-unfused", Family.KERNEL, check, frozenset({Need.DEVICE, Need.SHAPES}))
