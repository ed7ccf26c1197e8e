"""Triton tunes its kernels inside warm steps.

## What it finds
Steps after the first in which Triton's autotuner runs candidates of a kernel and times them.

## Why it is slow
Each candidate runs many times, with synchronisation in between. The result is remembered by a key that the kernel's
author chose; when the key holds a length, every new length is tuned for.

## How it is detected
With stacks: frames of `triton/runtime/autotuner.py` that benchmark (`_bench`, `do_bench`) in at least two steady steps.
The gain replays the step without these frames and all that they launched.

## When it does not matter
First steps, and new shapes that will stay.

## How to fix it
Before:

```python
@triton.autotune(configs=CONFIGS, key=["sequence_length"])
```

After:

```python
@triton.autotune(configs=CONFIGS, key=["sequence_length_bucket"])  # or one fixed config; TRITON_CACHE_AUTOTUNING=1
```

## References
- triton-lang/triton#3166
- vllm-project/speculators#1111
"""

import re
from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.blocking import blocking
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind

TUNING = re.compile(
    r"(triton[/\\]runtime[/\\]autotuner|triton[/\\]testing|runtime[/\\]benchmarking)\.py\(\d+\): \w*bench"
)


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all tuning in steady steps."""
    tree, times, trace = facts.get(nesting), facts.get(steady), facts.trace
    rows = times.rows(facts, named(trace, Kind.PYTHON, lambda name: TUNING.search(name) is not None))
    rows = tree.tops(rows)
    stricken = int(np.count_nonzero(times.per_step(trace.ts_ns[rows])))
    if stricken < 2:
        return
    waits = facts.get(blocking)
    where = facts.get(whereabouts).most(rows)
    yield Suspect(
        title=f"Triton tunes kernels in {stricken} of {len(times)} warm steps, {len(rows)} times",
        rows=rows,
        where=where,
        change=Change(
            unblocked=waits.part(waits.inside(facts, rows)).calls,
            shortened=rows,
            removed=facts.partition.activities.row[tree.launched_below(rows)],
        ),
        fix=f"Make the autotuner's key{f' at {where.label}' if where.label else ''} coarser (buckets of lengths), fix "
        "the configuration, or keep results with TRITON_CACHE_AUTOTUNING=1.",
        reason="benchmarking frames of Triton in steps after the first",
    )


RULE = Rule("triton-autotune-in-step", Family.COMPILE, check, frozenset({Need.STACKS, Need.STEPS}))
