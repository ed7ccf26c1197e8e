"""Charged stretches of one host event gathered into one, so that every event is asked about once."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.charges import Charges
from torchdiag.timeline.result import Cause
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

DATALOADER = list(Cause).index(Cause.DATALOADER)


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """Charges of which each stands for one or more: the first of them, with their sum.

    `charges` are n of the original ones, in no particular order; `idle_ns` and `count`, int64[n], are what they stand
    for together.
    """

    charges: Charges
    idle_ns: NDArray[np.int64]
    count: NDArray[np.int64]


def folded(trace: Trace, charges: Charges) -> Folded:
    """Gather the stretches of each host event, those within a data loader apart from the others.

    Stretches without an event, and those of annotations, stay alone: they are told by the launch they led to.
    """
    alone = (charges.event < 0) | (trace.kind[charges.event] == Kind.ANNOTATION)
    loading = charges.cause == DATALOADER
    length = charges.end_ns - charges.start_ns
    kept, idle, count = [np.flatnonzero(alone)], [length[alone]], [np.ones(np.count_nonzero(alone), np.int64)]
    slot = np.empty(len(trace), np.int32)
    for chosen in (~alone & loading, ~alone & ~loading):
        stretch = np.flatnonzero(chosen)
        event = charges.event[stretch]
        slot[event[::-1]] = np.arange(len(stretch), dtype=np.int32)[::-1]  # the first stretch of an event is left
        first = np.flatnonzero(slot[event] == np.arange(len(stretch)))
        slot[event[first]] = np.arange(len(first), dtype=np.int32)
        total = np.zeros(len(first), np.int64)
        np.add.at(total, slot[event], length[stretch])
        kept.append(stretch[first])
        idle.append(total)
        count.append(np.bincount(slot[event], minlength=len(first)))
    chosen = np.concatenate(kept)
    columns = (getattr(charges, field.name)[chosen] for field in fields(Charges))
    return Folded(Charges(*columns), np.concatenate(idle), np.concatenate(count))
