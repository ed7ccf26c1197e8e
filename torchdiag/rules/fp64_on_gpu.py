"""Double precision has crept in.

## What it finds
Kernels on `float64` tensors with a noticeable share of the time.

## Why it is slow
GPUs for graphics multiply doubles at a 32nd or 64th of their FP32 speed, those for data centres at half; and twice the
bytes are moved.

## How it is detected
PyTorch operators whose first tensor is of type `double` and has more than one element, whose kernels take a twentieth
of the kernels' time or more. The gain replays the step with these kernels twice as fast; products on GPUs that are not
for data centres may win far more.

## When it does not matter
Physics and statistics may need it: where nearly all of the time goes into doubles they are taken to be meant, and no
gain is given. A loss that is summed in double costs nothing.

## How to fix it
Before:

```python
x = torch.from_numpy(np.random.rand(n, d)).cuda()  # float64, as numpy makes it
```

After:

```python
x = torch.from_numpy(np.random.rand(n, d).astype(np.float32)).cuda()
```

## References
- dfalbel/torch#12
- gazprom-neft/seismiqb#19: hidden conversions in transforms
- dingo-gw/dingo#55
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import elements, inputs
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.columns import NO_TEXT

SHARE, FASTER = 0.05, 2.0
MEANT = 0.9
"""What fills this share of the kernels' time has not crept in."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all kernels on doubles."""
    found = facts.get(kernels).compute()
    launched = found.part(found.operator >= 0)
    double = _doubles(facts, launched.operator)
    slow = launched.part(double)
    share = float(slow.dur_ns.sum()) / max(float(found.dur_ns.sum()), 1.0)
    if share < SHARE:
        return
    meant = share > MEANT
    where = facts.get(whereabouts).most(slow.call)
    at = f" at {where.label}" if where.label else ""
    yield Suspect(
        title=f"Kernels on float64 tensors take {100 * share:.0f} % of the kernels' time, most of them{at}",
        rows=slow.row,
        where=where,
        change=None if meant else Change(scaled=slow.row, device_scale=1 / FASTER),
        hopeful=None if meant else Change(scaled=slow.row, device_scale=1 / 32),
        fix=f"Convert to float32 where the data come in ({where.label or 'dtype=np.float32, .float()'}), unless double "
        "precision is meant.",
        reason="nearly everything runs in double, as if it were meant: record a run in float32 to compare"
        if meant
        else f"operators with inputs of type double, assumed to be {FASTER:g} times as fast in float32",
        confidence="low" if meant else "medium",
        verdict="cannot-tell" if meant else None,
    )


def _doubles(facts: Facts, operators: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[k]: the operators whose first tensor holds doubles and is no single number."""
    trace, given = facts.trace, facts.get(inputs)
    mentions = np.append(trace.texts.codes_where(lambda text: "double" in text), False)  # the last is for NO_TEXT
    codes = trace.args.input_types.at(operators, NO_TEXT)
    answer = mentions[codes]
    known: dict[tuple[int, int], bool] = {}
    for index in np.flatnonzero(answer).tolist():
        row = int(operators[index])
        key = (int(codes[index]), int(given.codes(operators[index : index + 1])[0]))
        if key not in known:
            pairs = zip(given.types(row), given.dims(row), strict=False)
            kind, shape = next(((kind, shape) for kind, shape in pairs if shape), ("", ()))
            known[key] = kind == "double" and elements(shape) > 1 and _is_aten(trace.names[int(trace.name[row])])
        answer[index] = known[key]
    return answer


def _is_aten(name: str) -> bool:
    """Whether an operator is one of PyTorch's own: those that wrap others take many tensors of many types."""
    return name.startswith("aten::")


RULE = Rule("fp64-on-gpu", Family.KERNEL, check, frozenset({Need.DEVICE, Need.SHAPES}))
