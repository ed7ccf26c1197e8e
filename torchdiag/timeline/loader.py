"""When a thread waits for its data loader's next batch."""

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.trace.columns import Trace
from torchdiag.trace.find_text import holding
from torchdiag.trace.vocabulary import LOADER_ANNOTATION, LOADER_FRAME, LOADER_METHOD, Kind

Times = NDArray[np.int64]


def loading(trace: Trace) -> dict[int, tuple[Times, Times]]:
    """Track -> the disjoint, ascending stretches (starts, ends) in which a `__next__` of a DataLoader runs on it."""
    rows = loader_events(trace)
    rows = rows[np.argsort(trace.ts_ns[rows], kind="stable")]
    start = trace.ts_ns[rows]
    end = start + trace.dur_ns[rows]
    track = trace.track[rows]
    return {
        number: intervals.union(start[track == number], end[track == number]) for number in np.unique(track).tolist()
    }


def loader_events(trace: Trace) -> NDArray[np.int64]:
    """int64: the annotations and Python frames of a DataLoader's `__next__`, ascending."""
    kind_of_name = np.zeros(len(trace.names) + 1, np.uint8)  # the last is for NO_TEXT, which is -1
    for code in holding(trace.names, LOADER_METHOD).tolist():
        name = trace.names[code]
        if LOADER_ANNOTATION.match(name):
            kind_of_name[code] = Kind.ANNOTATION
        elif LOADER_FRAME.match(name):
            kind_of_name[code] = Kind.PYTHON
    if not kind_of_name.any():
        return np.empty(0, np.int64)
    wanted = kind_of_name[trace.name]
    return np.flatnonzero((wanted != Kind.OTHER) & (trace.kind == wanted))
