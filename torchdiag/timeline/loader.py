"""When a thread waits for its data loader's next batch."""

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.distinct import distinct
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
        number: intervals.union(start[track == number], end[track == number]) for number in distinct(track).tolist()
    }


def loader_events(trace: Trace) -> NDArray[np.int64]:
    """int64: the annotations and Python frames of a DataLoader's `__next__`, ascending."""
    found = [np.empty(0, np.int64)]
    for code in holding(trace.names, LOADER_METHOD).tolist():
        name = trace.names[code]
        for pattern, kind in ((LOADER_ANNOTATION, Kind.ANNOTATION), (LOADER_FRAME, Kind.PYTHON)):
            if pattern.match(name):
                rows = np.flatnonzero(trace.name == code)
                found.append(rows[trace.kind[rows] == kind])
    return np.sort(np.concatenate(found))
