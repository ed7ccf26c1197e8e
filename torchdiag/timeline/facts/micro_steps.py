"""The forward passes of DistributedDataParallel between two steps of the optimizer, and which of them synchronise."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named, operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]

FORWARD = "DistributedDataParallel.forward"
OPTIMIZER_STEP = "Optimizer.step#"
REDUCER = ("torch::distributed::reducer::mul_out", "torch.distributed.ddp.reducer::copy_bucket_to_grad")
"""Operators that the reducer runs for each gradient that it communicates."""


@dataclass(frozen=True, eq=False)
class MicroSteps:
    """Stretches from a forward pass of DistributedDataParallel to the next, in steady steps.

    `start_ns`, `end_ns` int64[m]. `redundant` bool[m]: its backward pass reduces gradients although another micro-step
    follows before the optimizer's step, and so do all micro-steps of that optimizer step. `accumulated` is how many
    forward passes there are to a step of the optimizer, 0 where that cannot be told.
    """

    start_ns: Rows
    end_ns: Rows
    redundant: NDArray[np.bool_]
    accumulated: float

    def of(self, instant: Rows) -> NDArray[np.bool_]:
        """bool[k]: which of the instants lie in a micro-step that reduces in vain."""
        place = np.searchsorted(self.start_ns, instant, side="right") - 1
        inside = (place >= 0) & (instant < self.end_ns[np.maximum(place, 0)]) if len(self.start_ns) else place >= 0
        return inside & self.redundant[np.maximum(place, 0)] if len(self.redundant) else inside


def micro_steps(facts: Facts) -> MicroSteps:
    """The micro-steps of the steady steps."""
    trace, times = facts.trace, facts.get(steady)
    begun = [named(trace, kind, lambda name: name == FORWARD) for kind in (Kind.ANNOTATION, Kind.OPERATOR)]
    start = np.sort(trace.ts_ns[times.rows(facts, np.concatenate(begun))])
    stepped = [
        named(trace, kind, lambda name: name.startswith(OPTIMIZER_STEP)) for kind in (Kind.ANNOTATION, Kind.OPERATOR)
    ]
    updates = np.sort(trace.ts_ns[times.rows(facts, np.concatenate(stepped))])
    if not len(start) or not len(updates):
        return MicroSteps(start, start, np.zeros(len(start), np.bool_), 0.0)
    until = np.append(updates, np.iinfo(np.int64).max)
    update = np.searchsorted(updates, start)
    end = np.minimum(np.append(start[1:], np.iinfo(np.int64).max), until[update])
    reduced = np.sort(trace.ts_ns[operators(trace, *REDUCER)])
    synced = np.searchsorted(reduced, end) > np.searchsorted(reduced, start)
    redundant = np.zeros(len(start), np.bool_)
    for mine in np.split(np.arange(len(start)), np.searchsorted(update, np.arange(1, len(updates) + 1)))[
        : len(updates)
    ]:
        if len(mine) > 1 and synced[mine].all():
            redundant[mine[:-1]] = True
    counted = np.bincount(update, minlength=len(updates) + 1)[: len(updates)]
    return MicroSteps(start, end, redundant, float(np.median(counted)))
