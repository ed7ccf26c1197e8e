"""A debugger, a coverage tool or another profiler watches every Python call.

## What it finds
Frames of `pydevd`, `debugpy`, `coverage`, `bdb`, `cProfile`, `line_profiler` and others like them.

## Why it is slow
They are called for every function or line of Python that runs. Host code becomes several times, an optimizer thirty
times slower; what the trace shows then is no property of the program.

## How it is detected
Such frames on a thread that calls operators, around or inside the steps. What they cost every other function is not in
the trace: that cannot be told from it, and the finding asks for a recording without them.

## When it does not matter
Frames of torch's own profiler are no such thing; what `with_stack=True` adds is told by a run without it.

## How to fix it
Before:

```console
python -m cProfile train.py
```

After:

```console
python train.py
torchdiag profile train.py
```

In an IDE, use "run" rather than "debug".

## References
- pytorch/pytorch#134191: an optimizer's step took 187 ms on the host with a debugger attached, 6 ms without
"""

import re
from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

TRACERS = {
    "pydevd": re.compile(r"pydevd|_pydev_|debugpy"),
    "bdb": re.compile(r"(^|[/\\])(bdb|pdb)\.py\(\d+\): (trace_dispatch|dispatch_\w+|runcall|run|runeval|set_trace)$"),
    "coverage": re.compile(r"(^|[/\\])coverage[/\\](?!__init__|config)\w+\.py\("),
    "cProfile": re.compile(r"(^|[/\\])(cProfile|profile)\.py\(\d+\): (runctx|runcall|run|trace_dispatch\w*)$"),
    "line_profiler": re.compile(r"line_profiler|kernprof"),
    "viztracer": re.compile(r"(^|[/\\])viztracer[/\\]"),
}


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for whatever watches."""
    trace, times = facts.trace, facts.get(steady)
    threads = np.bincount(trace.track[trace.kind == Kind.OPERATOR], minlength=len(trace.tracks)) > 0
    rows = named(trace, Kind.PYTHON, lambda name: any(pattern.search(name) for pattern in TRACERS.values()))
    begins, ends = trace.ts_ns[rows], trace.ts_ns[rows] + trace.dur_ns[rows]
    during = (begins < times.end_ns[-1]) & (ends > times.start_ns[0]) & threads[trace.track[rows]]
    rows = rows[during]
    inside = times.rows(facts, rows)
    around = rows[trace.dur_ns[rows] >= times.total_ns]
    if not times.in_most(trace.ts_ns[inside]) and not len(around):
        return
    names = {trace.names[code] for code in trace.name[rows].tolist()}
    tools = sorted(tool for tool, pattern in TRACERS.items() if any(pattern.search(name) for name in names))
    yield Suspect(
        title=f"{' and '.join(tools)} watched the program while it was recorded",
        rows=inside if len(inside) else around[:1],
        fix=f"Run without {' and '.join(tools)}, and record again: host times of this trace are those of the tool.",
        reason="frames of the tool are in the trace; what it costs every other function is not: record without it",
        verdict="cannot-tell",
    )


RULE = Rule("python-tracer-attached", Family.PAUSE, check, frozenset({Need.STACKS}))
