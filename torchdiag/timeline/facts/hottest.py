"""Which of a person's functions the time inside some host events is spent in."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import frames
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import HOST_KINDS, named, nesting
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Hottest:
    """A function (`dataset.py:31 __getitem__`) and the share (0..1) of the events' time that is spent in it."""

    label: str
    share: float


def hottest(facts: Facts, rows: Rows) -> Hottest | None:
    """The innermost function of a person's code with the most time inside the rows; None where no stacks tell."""
    trace, tree = facts.trace, facts.get(nesting)
    host = np.flatnonzero(np.isin(trace.kind, HOST_KINDS) & (trace.dur_ns > 0))
    within = tree.below(host, rows) | np.isin(host, rows)
    inside = host[within]
    users = tree.mask(np.intersect1d(inside, named(trace, Kind.PYTHON, frames.is_user)))
    owner = np.where(users[inside], inside, tree.nearest(inside, users))
    known = owner >= 0
    total = int(trace.dur_ns[rows].sum())
    if not known.any() or total <= 0:
        return None
    names, which = np.unique(trace.name[owner[known]], return_inverse=True)
    spent = np.bincount(which, tree.own_ns[inside[known]])
    most = int(np.argmax(spent))
    frame = frames.parse(trace.names[int(names[most])])
    return Hottest(frame.label, float(spent[most]) / total) if frame is not None else None
