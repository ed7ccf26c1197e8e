"""What grows from step to step: memory that is not given back, and the backward pass."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.distinct import distinct
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

Counts = NDArray[np.int64]
NODE = "autograd::engine::evaluate_function: "
OPTIMIZER_STEP = "Optimizer.step#"


@dataclass(frozen=True, eq=False)
class Growth:
    """One value a steady step in each column, int64.

    `backward`: nodes of the autograd graph that ran, `forward`: operators outside of them. `least_bytes`: the least
    memory that was allocated during the step on the device that grew most (the host without one), 0 columns where no
    memory was recorded.
    """

    backward: Counts
    forward: Counts
    least_bytes: Counts


def growth(facts: Facts) -> Growth:
    """What grows from steady step to steady step."""
    trace, times = facts.trace, facts.get(steady)
    nodes = named(trace, Kind.OPERATOR, lambda name: name.startswith(NODE))
    threads = distinct(trace.track[nodes]) if len(nodes) else np.empty(0, np.int64)
    calls = np.flatnonzero(trace.kind == Kind.OPERATOR)
    backward = times.per_step(trace.ts_ns[nodes])
    # Where the backward pass has threads of its own, the other threads tell the forward pass.
    others = calls[~np.isin(trace.track[calls], threads)]
    return Growth(backward, times.per_step(trace.ts_ns[others]), _least_bytes(facts))


def _least_bytes(facts: Facts) -> Counts:
    trace, times = facts.trace, facts.get(steady)
    rows = trace.args.total_allocated.rows.astype(np.int64)
    kind, device = trace.args.memory_device_type.at(rows, 0), trace.args.memory_device.at(rows, 0)
    step, total = times.of(trace.ts_ns[rows]), trace.args.total_allocated.values
    best = np.empty(0, np.int64)
    accelerated = bool((kind > 0).any())
    devices: list[int] = distinct(device[(kind > 0) == accelerated]).tolist()
    for one in devices:
        mine = (step >= 0) & (device == one) & ((kind > 0) == accelerated)
        if len(distinct(step[mine])) < len(times):
            continue
        least = np.full(len(times), np.iinfo(np.int64).max)
        np.minimum.at(least, step[mine], total[mine])
        if not len(best) or least[-1] - least[0] > best[-1] - best[0]:
            best = least
    return best
