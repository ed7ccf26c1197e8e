"""What was recorded is, or begins with, a warm-up.

## What it finds
Work that a program does once (loading kernels, creating library handles, compiling, growing the memory pool) inside the
recorded steps.

## Why it is slow
It is not: it never happens again. But a recording of it says little about the steps that follow.

## How it is detected
Calls that load modules, lazy loading of functions and compilations in the first step only, where that step is much
longer than the others, or for a large share of a recording that holds nothing else. Such a first step is left out of
every other finding.

## When it does not matter
Where the time to the first result is itself what is to be made shorter.

## How to fix it
Before:

```python
with torch.profiler.profile() as prof:
    train_step(batch)
```

After:

```python
from torch.profiler import profile, schedule

with profile(schedule=schedule(wait=1, warmup=2, active=3)) as prof:
    for batch in batches:
        train_step(batch)
        prof.step()
```

## References
- huggingface/blog#3389: profiling the first pass
- sgl-project/sglang#16219
"""

from collections.abc import Iterator

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.cold_start import cold_start
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import steady


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect: all of the recording, or its first step."""
    found, times, trace = facts.get(cold_start), facts.get(steady), facts.trace
    if (found.cold or found.mostly) and len(found.rows):
        yield Suspect(
            title=f"This is a cold start: {100 * found.of_recording:.0f} % of the time goes into what happens once",
            rows=found.rows,
            fix="Record warm steps: schedule(wait=1, warmup=2, active=3), and prof.step() at the end of each step.",
            reason="kernels are loaded or code is compiled in a recording without warm steps",
            verdict="no-gain",
        )
        return
    if times.whole or not facts.steps or 0 in times.number.tolist():
        return
    first = facts.steps[0]
    rows = found.rows[(trace.ts_ns[found.rows] >= first.start_ns) & (trace.ts_ns[found.rows] < first.end_ns)]
    if len(rows):
        usual = times.step_ns
        yield Suspect(
            title=f"The first step is a warm-up, {(first.end_ns - first.start_ns) / usual:.1f} times as long as the "
            "others, and left out",
            rows=rows,
            fix="Give the profiler's schedule a warm-up step: schedule(wait=1, warmup=2, active=3).",
            reason="the first recorded step loads kernels or compiles",
            verdict="no-gain",
        )


RULE = Rule("warmup-in-window", Family.MEASUREMENT, check)
