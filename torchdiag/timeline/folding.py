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

    `charges` are n of the original ones, in their order; `idle_ns` and `count`, int64[n], are what they stand for
    together.
    """

    charges: Charges
    idle_ns: NDArray[np.int64]
    count: NDArray[np.int64]


def folded(trace: Trace, charges: Charges) -> Folded:
    """Gather the stretches of each host event, those within a data loader apart from the others.

    Stretches without an event, and those of annotations, stay alone: they are told by the launch they led to.
    """
    told_by_event = (charges.event >= 0) & (trace.kind[charges.event] != Kind.ANNOTATION)
    loading = charges.cause == DATALOADER
    first = np.arange(len(charges), dtype=np.int32)  # of each stretch, the one that stands for it
    slot = np.empty(len(trace), np.int32)
    for chosen in (told_by_event & loading, told_by_event & ~loading):
        stretch = np.flatnonzero(chosen)
        event = charges.event[stretch]
        slot[event[::-1]] = stretch[::-1]  # the first stretch of an event is left
        first[stretch] = slot[event]
    stands = first == np.arange(len(charges))
    kept, place = np.flatnonzero(stands), (np.cumsum(stands) - 1)[first]
    idle = np.zeros(len(kept), np.int64)
    np.add.at(idle, place, charges.end_ns - charges.start_ns)
    columns = (getattr(charges, field.name)[kept] for field in fields(Charges))
    return Folded(Charges(*columns), idle, np.bincount(place, minlength=len(kept)))
