"""What issuing an operator costs by itself, apart from the work it does: what batching many into one saves."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import nesting
from torchdiag.timeline.facts.operator_order import operator_order
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.shortened import shortened, spans_of

Rows = NDArray[np.int64]

CHEAP_QUANTILE = 0.25
"""A quarter of the operators of a program cost hardly more than being called."""
MOST_NS = 20_000
LEAST_NS = 4_000
FEW = 2
"""So many calls do the work of a loop over tensors."""
COLLECTING_NS = 2_000
"""What collecting a tensor into a list and sorting it by type takes."""
KERNEL_NS = 1_500
"""What the smallest kernel takes: the device's own cost of a launch."""


def call_cost_ns(facts: Facts) -> float:
    """What one `aten::` operator costs the host, whatever it computes: 4 to 20 us."""
    tops = facts.get(steady).rows(facts, facts.get(operator_order).row)
    if not len(tops):
        return float(LEAST_NS)
    return float(np.clip(np.quantile(facts.trace.dur_ns[tops], CHEAP_QUANTILE), LEAST_NS, MOST_NS))


def work_share(facts: Facts, tops: Rows) -> float:
    """Share (0..1) of the time of operators that is work on the host: nothing for those that launch theirs."""
    trace, tree = facts.trace, facts.get(nesting)
    launches = facts.partition.activities.launch
    launching = tree.mask(tree.nearest(launches[launches >= 0], tree.mask(tops)))
    here = tops[~launching[tops]] if len(facts.partition.devices) == 0 else tops[:0]
    work = np.maximum(trace.dur_ns[here] - facts.get(call_cost_ns), 0).sum()
    return float(work) / max(int(trace.dur_ns[tops].sum()), 1)


def merged(facts: Facts, host: Change, kernels: Rows, calls_left: float) -> Change:
    """The change `host` where, besides, `calls_left` launches do the work of all `kernels` (device rows).

    The other kernels no longer run, nor are they launched; what is left of the host's time is what `host` says. Each
    kernel that remains takes what the smallest takes, and its share of the work of all.
    """
    trace = facts.trace
    kernels = kernels[np.argsort(trace.ts_ns[kernels], kind="stable")]
    count = min(int(np.ceil(calls_left)), len(kernels))
    if not count:
        return host
    kept = np.zeros(len(kernels), np.bool_)
    kept[np.linspace(0, len(kernels) - 1, count).astype(np.int64)] = True
    taken = trace.dur_ns[kernels].astype(np.float64)
    work = min(np.maximum(taken - KERNEL_NS, 0).sum() + KERNEL_NS * calls_left, taken.sum())
    total = max(sum(intervals.length(*spans) for spans in spans_of(shortened(trace, host))), 1)
    less = total - _launching_ns(facts, kernels[~kept])
    return replace(
        host,
        host_scale=min(host.host_scale * total / less, 1.0) if less > 0 else 0.0,
        removed=kernels[~kept],
        scaled=kernels[kept],
        device_scale=work / max(float(taken[kept].sum()), 1.0),
    )


def _launching_ns(facts: Facts, kernels: Rows) -> int:
    """The time of the calls that launch the kernels."""
    activities = facts.partition.activities
    launch = np.unique(activities.launch[np.isin(activities.row, kernels)])
    return int(facts.trace.dur_ns[launch[launch >= 0]].sum())


def batched(facts: Facts, runs: NDArray[np.int64], tensors: int, *, work: float = 1.0, kernels: bool = True) -> Change:
    """What a multi-tensor operator leaves of each run (first and last row, int64[k, 2]) over `tensors` in all.

    Collecting the tensors, calling the operator, and a share (`work`, 0..1) of the work of the host where the host does
    it; the work of the kernels elsewhere, all of their time without `kernels`.
    """
    trace, order = facts.trace, facts.get(operator_order)
    inside = order.through(runs)
    total = int((trace.ts_ns[runs[:, 1]] + trace.dur_ns[runs[:, 1]] - trace.ts_ns[runs[:, 0]]).sum())
    left = tensors * COLLECTING_NS + facts.get(call_cost_ns) * len(runs) * FEW
    left += work * work_share(facts, inside) * float(trace.dur_ns[inside].sum())
    launched = facts.partition.activities.row[facts.get(nesting).launched_below(inside)]
    host = Change(runs=runs, host_scale=min(left / max(total, 1), 1.0))
    return merged(facts, host, launched, len(runs) * FEW) if kernels else host
