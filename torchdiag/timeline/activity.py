"""Device activities: what ran on a device, when, and which call launched it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Activities:
    """Device activities sorted by (device, start, end, row), durations repaired.

    `row` int64 is the trace row, `start_ns` and `end_ns` int64 (end is cut where the duration was faulty), `device`
    and `stream` int64 (stream -1 when the trace has none), `work` uint8 of `vocabulary.Work`, `launch` int64 the row
    of the launching call or -1 for unlinked work.
    """

    row: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    device: NDArray[np.int64]
    stream: NDArray[np.int64]
    work: NDArray[np.uint8]
    launch: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.row)
