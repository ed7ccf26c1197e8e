"""Python's garbage collections inside the steady steps, from whoever recorded them."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import recorded
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

COLLECTS = re.compile(r"^Python GC( generation \d+)?$")
ASKED_FOR = re.compile(r"^<built-in (function|method) collect( of [^>]*)?>$|^gc\.collect$")


@dataclass(frozen=True, eq=False)
class Collections:
    """`row` int64[k]: the collections, ascending. `asked_for` bool[k]: whether the program called `gc.collect`."""

    row: NDArray[np.int64]
    asked_for: NDArray[np.bool_]


def collections_of_garbage(facts: Facts) -> Collections:
    """The collections of the profiler's own record, else those that torchdiag recorded."""
    trace, times = facts.trace, facts.get(steady)
    rows = times.rows(facts, named(trace, Kind.PYTHON, lambda name: COLLECTS.match(name) is not None))
    if not len(rows):
        rows = times.rows(facts, recorded.rows_of(trace, "collection"))
    calls = named(trace, Kind.PYTHON, lambda name: ASKED_FOR.match(name) is not None)
    tracks = recorded.threads(trace)[trace.track[rows]]
    asked = np.zeros(len(rows), np.bool_)
    for track in set(tracks.tolist()):
        mine = calls[trace.track[calls] == track]
        mine = mine[facts.get(nesting).nearest(mine, facts.get(nesting).mask(mine)) < 0]
        mine = mine[np.argsort(trace.ts_ns[mine], kind="stable")]
        here = np.flatnonzero(tracks == track)
        place = np.searchsorted(trace.ts_ns[mine], trace.ts_ns[rows[here]], side="right") - 1
        within = place >= 0
        last = mine[np.maximum(place, 0)] if len(mine) else place
        if len(mine):
            asked[here] = within & (trace.ts_ns[rows[here]] < trace.ts_ns[last] + trace.dur_ns[last])
    return Collections(rows, asked)
