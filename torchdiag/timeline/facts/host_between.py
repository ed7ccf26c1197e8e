"""What a host thread does between two of its calls."""

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import HOST_KINDS, nesting

Rows = NDArray[np.int64]


def host_between(facts: Facts, first: Rows, last: Rows) -> Rows:
    """The outermost host events that lie between the end of each `first` call and the start of its `last` one.

    Both are int64[k], each pair on one thread.
    """
    trace = facts.trace
    start, end = trace.ts_ns[first] + trace.dur_ns[first], trace.ts_ns[last]
    found: list[Rows] = [np.empty(0, np.int64)]
    host = np.flatnonzero(np.isin(trace.kind, HOST_KINDS))
    track = trace.track[first]
    for number in np.flatnonzero(np.bincount(track, minlength=1)).tolist():
        mine = np.flatnonzero(track == number)
        mine = mine[np.lexsort((start[mine], end[mine]))]
        rows = host[trace.track[host] == number]
        place = np.minimum(np.searchsorted(end[mine], trace.ts_ns[rows], side="right"), len(mine) - 1)
        pair = mine[place]
        inside = (start[pair] <= trace.ts_ns[rows]) & (trace.ts_ns[rows] + trace.dur_ns[rows] <= end[pair])
        found.append(rows[inside])
    return facts.get(nesting).tops(np.sort(np.concatenate(found)))
