"""The host cannot issue work as fast as the device does it.

## What it finds
Steps in which the device waits for operators, Python and launches, kernel after small kernel, with nothing else to wait
for.

## Why it is slow
An operator costs the host 5 to 50 us however little it computes; kernels of a few microseconds are over before the next
one is issued. A faster device, or half the batch, changes nothing.

## How it is detected
The device is busy less than 70 % of the steady steps; what the host does (Python, operators, launch calls and their
latency, not synchronising, copying, loading or allocating) accounts for at least half of the idle time and a quarter of
the step. The gain replays the step with a quarter of the host's time in stretches of launching operators, as CUDA
graphs leave; 60 % at the least (torch.compile alone), 5 % at the most. It can never exceed what the device leaves idle.

## When it does not matter
Loops over parameters, averages or elements that explain them, synchronisations, the input pipeline and allocations that
explain the gaps have rules of their own, which are asked first. Recording with stacks can itself make a program look
launch-bound: compare with a run without.

## How to fix it
Before:

```python
for batch in loader:
    loss = step(model, batch)
```

After:

```python
step = torch.compile(step, mode="reduce-overhead")  # fuses, and captures CUDA graphs
for batch in loader:
    loss = step(model, batch)
```

A larger batch gives each launch more to do; `torch.cuda.make_graphed_callables` captures without compiling.

## References
- facebookresearch/sam2#768: 53.7 ms a frame with the GPU busy for 7.3, 12.0 ms with CUDA graphs
- huggingface/lerobot#4607: 28.0 ms became 13.0
- modelscope/FunASR#3705: 8080 kernels for 37 ms of work
- roboflow/rf-detr#1410: the same program bound by one machine's host and by another's GPU
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.amounts import time_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline import intervals
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.averages import averages
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.idle import CAUSES, gpu_busy, idle
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.loops import loops
from torchdiag.timeline.facts.nesting import nesting
from torchdiag.timeline.facts.optimizer_runs import optimizer_runs
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.result import Cause
from torchdiag.trace.vocabulary import Kind

HOST = (Cause.PYTHON, Cause.FRAMEWORK, Cause.LAUNCH, Cause.LAUNCH_LATENCY, Cause.RUNTIME)
MOST_BUSY = 0.7
LEAST_OF_IDLE = 0.5
LEAST_OF_STEP = 0.25
FEWEST = 10
UNLINKED = 0.1
"""Where so many kernels have no launch call, the idle time without a cause may be the host's."""
APART_NS = 100_000
"""Launching operators that are further apart have something else between them."""
LEFT, MOST_LEFT, LEAST_LEFT = 0.25, 0.6, 0.05


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for the whole step."""
    busy, found, times = facts.get(gpu_busy), facts.get(kernels), facts.get(steady)
    unlinked = float((found.call < 0).mean()) if len(found) else 0.0
    found = found.part(found.call >= 0)
    if busy is None or busy >= MOST_BUSY or len(found) < FEWEST:
        return
    runs = _stretches(facts, found.call[~_accused_elsewhere(facts, found.call)])
    lost, unknown = _idle_ns(facts, runs), facts.get(idle).total_ns(Cause.UNKNOWN, Cause.UNATTRIBUTED)
    least = max(LEAST_OF_IDLE * facts.get(idle).total_ns(), LEAST_OF_STEP * times.total_ns)
    if lost + (unknown if unlinked >= UNLINKED else 0) < least:
        return
    often, usual = len(found) / len(times), float(np.median(found.dur_ns))
    when = "in the trace" if times.whole else "a step"
    yield Suspect(
        title=f"The device is busy {busy:.0%} of the time: {often:.4g} kernels {when} (median {time_text(usual)}) run "
        "faster than the host issues them",
        rows=np.unique(found.call),
        change=Change(runs=runs, host_scale=LEFT),
        cautious=Change(runs=runs, host_scale=MOST_LEFT),
        hopeful=Change(runs=runs, host_scale=LEAST_LEFT),
        fix='Compile the step with torch.compile(mode="reduce-overhead"), or capture it with '
        "torch.cuda.make_graphed_callables; else a larger batch, or fewer and larger operators.",
        reason=f"Python, operators and launches account for {lost / times.total_ns:.0%} of the time; the gain assumes "
        "that graphs leave a quarter of that (60 % at the least gain, 5 % at the most)"
        if lost >= least
        else f"{unlinked:.0%} of the kernels have no launch call in the trace, so that their gaps have no known cause: "
        "record with a torch that traces driver calls",
        confidence="medium",
        verdict=None if lost >= least else "cannot-tell",
    )


def _accused_elsewhere(facts: Facts, calls: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[k]: calls inside loops, averages and optimizers that rules of their own speak of."""
    trace, runs = facts.trace, facts.get(optimizer_runs)
    spans = [(item.first, item.last) for item in (*facts.get(loops), *facts.get(averages))]
    if len(runs):
        looping = (runs.counted("aten::_fused_") == 0) & (runs.parameters >= FEWEST)
        looping |= runs.counted("aten::_foreach_") > 0
        spans += [(row, row) for row in runs.row[looping].tolist()]
    found = np.zeros(len(calls), np.bool_)
    for first, last in spans:
        end = trace.ts_ns[last] + trace.dur_ns[last]
        found |= (trace.ts_ns[calls] >= trace.ts_ns[first]) & (trace.ts_ns[calls] < end)
    return found


def _idle_ns(facts: Facts, runs: NDArray[np.int64]) -> int:
    """Idle nanoseconds that the host causes during the runs, a mean over the devices."""
    trace, found = facts.trace, facts.get(idle)
    start, end = trace.ts_ns[runs[:, 0]], trace.ts_ns[runs[:, 1]] + trace.dur_ns[runs[:, 1]]
    order = np.argsort(start, kind="stable")
    start, end = intervals.union(start[order], end[order])
    cut_start, cut_end, whole = intervals.cut(
        found.charges.start_ns, found.charges.end_ns, np.sort(np.concatenate((start, end)))
    )
    caused = np.isin(found.charges.cause, [CAUSES.index(cause) for cause in HOST])[whole]
    inside = intervals.inside(start, end, cut_start) >= 0
    return int((cut_end - cut_start)[caused & inside].sum()) // max(found.devices, 1)


def _stretches(facts: Facts, calls: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[k, 2]: first and last of the outermost operators that launch, as far as they follow closely."""
    trace, tree = facts.trace, facts.get(nesting)
    tops = tree.outermost(calls, trace.kind == Kind.OPERATOR)
    tops = np.unique(np.where(tops >= 0, tops, calls))
    tops = tops[tree.nearest(tops, tree.mask(tops)) < 0]
    tops = tops[np.lexsort((trace.ts_ns[tops], trace.track[tops]))]
    if not len(tops):
        return np.empty((0, 2), np.int64)
    end = trace.ts_ns[tops] + trace.dur_ns[tops]
    fresh = np.ones(len(tops), np.bool_)
    fresh[1:] = (trace.track[tops[1:]] != trace.track[tops[:-1]]) | (trace.ts_ns[tops[1:]] - end[:-1] > APART_NS)
    last = np.concatenate((fresh[1:], [True]))
    return np.stack((tops[fresh], tops[last]), axis=1)


RULE = Rule("launch-bound-small-kernels", Family.LAUNCH, check, frozenset({Need.DEVICE}))
