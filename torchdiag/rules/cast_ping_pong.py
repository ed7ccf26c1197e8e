"""Tensors are converted to another precision and straight back.

## What it finds
Pairs of conversions of one tensor, float to half and back (or the other way round), with nothing but a little work in
between.

## Why it is slow
A conversion reads and writes the whole tensor. Norms in float between layers in half, `.half().float()`, and modules
that convert their own weights in every micro-step add such traffic.

## How it is detected
`aten::_to_copy` operators of one thread in pairs: the second converts back what the first converted, with the same
shape, and no product, convolution or attention in between, which the conversion may be for. Their kernels have 2 % of
the kernels' time or more. The gain replays the step without one of the two, at most without both.

## When it does not matter
Autocast converts a weight once in every forward pass; that is no pair and is not reported, and neither is a conversion
of the input.

## How to fix it
Before:

```python
h = norm(h.float()).half()
```

After:

```python
h = norm(h)  # F.layer_norm and F.rms_norm compute in float inside and keep the precision of h
```

## References
- huggingface/transformers#48692: norms in float, 0.60 s a step became 0.48
- pytorch/pytorch#70548: the usual casts of autocast, mistaken for a bug
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import Shape, inputs
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.nesting import nesting, operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.columns import NO_TEXT

SHARE = 0.02
DTYPES = {"5": "half", "6": "float", "15": "bfloat16"}
TYPES = {"c10::Half": "half", "float": "float", "c10::BFloat16": "bfloat16"}
APART = 4
"""Conversions that may lie between the two of a pair."""
WORK = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear", "aten::convolution", "aten::matmul",
        "aten::scaled_dot_product_attention", "aten::_scaled_mm", "aten::lstm", "aten::gru")  # fmt: skip
"""Operators that a tensor is converted for."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all pairs, at the line that has the most of them."""
    times, tree, found = facts.get(steady), facts.get(nesting), facts.get(kernels)
    rows = times.rows(facts, operators(facts.trace, "aten::_to_copy"))
    first, second = _pairs(facts, rows)
    if not len(first):
        return
    activities = facts.partition.activities
    back = activities.row[tree.launched_below(second)]
    both = np.concatenate((activities.row[tree.launched_below(first)], back))
    time = float(found.dur_ns[np.isin(found.row, both)].sum())
    share = time / max(float(found.compute().dur_ns.sum()), 1.0)
    if share < SHARE or not times.in_most(facts.trace.ts_ns[first]):
        return
    where = facts.get(whereabouts).most(second)
    at = f" at {where.label}" if where.label else ""
    yield Suspect(
        title=f"{len(first) / len(times):.3g} tensors a step are converted to another precision and back{at}, "
        f"{100 * share:.0f} % of the kernels' time",
        rows=second,
        where=where,
        change=Change(removed=back, shortened=second),
        hopeful=Change(removed=both, shortened=np.concatenate((first, second))),
        fix=f"Keep one precision{at}: drop .float() and .half() around norms and residuals (they compute in float "
        "inside), and hold the weights in the precision they are used in.",
        reason="each pair converts one shape there and back; that one of the two goes is assumed",
        confidence="medium",
    )


def _pairs(facts: Facts, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Conversions, and those of the same thread soon after that convert back."""
    trace = facts.trace
    first: list[int] = []
    second: list[int] = []
    working = operators(trace, *WORK)
    casts = _casts(facts, rows)
    rows = np.array(sorted(casts), np.int64)
    for track in sorted(set(trace.track[rows].tolist())):
        mine = rows[trace.track[rows] == track]
        recent: list[tuple[int, tuple[str, str, Shape]]] = []
        busy = np.sort(trace.ts_ns[working[trace.track[working] == track]])
        done = 0
        for row in mine[np.argsort(trace.ts_ns[mine], kind="stable")].tolist():
            cast = casts[row]
            source, target, shape = cast
            before, done = done, int(np.searchsorted(busy, trace.ts_ns[row]))
            recent = recent if done == before else []
            match = next((item for item in reversed(recent) if item[1] == (target, source, shape)), None)
            if match is None:
                recent = [*recent[-APART:], (row, cast)]
                continue
            recent.remove(match)
            first.append(match[0])
            second.append(row)
    return np.array(first, np.int64), np.array(second, np.int64)


def _casts(facts: Facts, rows: NDArray[np.int64]) -> dict[int, tuple[str, str, Shape]]:
    """What each of the rows converts, for those that convert between these precisions."""
    args = facts.trace.args
    columns = (args.input_types, args.concrete_inputs, args.input_dims)
    key = np.stack([column.at(rows, NO_TEXT) for column in columns])
    _, first, same = np.unique(key, axis=1, return_index=True, return_inverse=True)
    distinct = [_cast(facts, row) for row in rows[first].tolist()]
    pairs = zip(rows.tolist(), same.reshape(-1).tolist(), strict=True)
    return {row: cast for row, number in pairs if (cast := distinct[number]) is not None}


def _cast(facts: Facts, row: int) -> tuple[str, str, Shape] | None:
    """From which precision to which, and the shape; None for what is no such conversion."""
    given = facts.get(inputs)
    types, concrete, dims = given.types(row), given.concrete(row), given.dims(row)
    if not types or len(concrete) < 2 or not dims or not dims[0]:
        return None
    source, target = TYPES.get(types[0]), DTYPES.get(concrete[1])
    return (source, target, dims[0]) if source and target and source != target else None


RULE = Rule("cast-ping-pong", Family.KERNEL, check, frozenset({Need.DEVICE, Need.SHAPES}))
