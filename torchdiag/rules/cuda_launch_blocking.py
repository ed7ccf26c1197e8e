"""Every launch waits for its kernel.

## What it finds
`CUDA_LAUNCH_BLOCKING=1` (`AMD_SERIALIZE_KERNEL` and `HIP_LAUNCH_BLOCKING` on ROCm), left on from debugging.

## Why it is slow
Host and device then never work at the same time: the device waits for every launch, the host for every kernel.

## How it is detected
At least 95 % of the launch calls in steady steps end no earlier than the kernel that they launched, on 50 kernels or
more. The gain is the step replayed with launches that do not wait.

## When it does not matter
Code that synchronises after each operator looks alike from far off, but the waiting is in the synchronising calls then
and not in the launches. Long launch calls with a full queue end long before their own kernel does.

## How to fix it
Before:

```console
CUDA_LAUNCH_BLOCKING=1 python train.py
```

After:

```console
python train.py
```

## References
- PyTorch's notes on CUDA semantics: asynchronous execution, and the variable that ends it
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import GRAPH_LAUNCH, Call

FEWEST = 50
NEARLY_ALL = 0.95


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all launches."""
    trace, found = facts.trace, facts.get(kernels).compute()
    found = found.part(found.call >= 0)
    graphs = trace.names.codes_where(lambda name: GRAPH_LAUNCH in name)
    found = found.part((trace.call[found.call] == Call.LAUNCH) & ~graphs[trace.name[found.call]])
    if len(found) < FEWEST:
        return
    waits = trace.ts_ns[found.call] + trace.dur_ns[found.call] >= found.end_ns
    if np.count_nonzero(waits) < NEARLY_ALL * len(found):
        return
    rows = np.unique(found.call[waits])
    share = np.count_nonzero(waits) / len(found)
    yield Suspect(
        title=f"{share:.0%} of {len(rows) / len(facts.get(steady)):.4g} launches a step wait for their kernel",
        rows=rows,
        change=Change(unblocked=rows),
        fix="Unset CUDA_LAUNCH_BLOCKING (AMD_SERIALIZE_KERNEL, HIP_LAUNCH_BLOCKING), in the environment and in code "
        "that sets it before importing torch.",
        reason="launch calls that end only after the kernel they launched",
    )


RULE = Rule("cuda-launch-blocking", Family.LAUNCH, check, frozenset({Need.DEVICE}))
