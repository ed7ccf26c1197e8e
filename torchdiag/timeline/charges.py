"""Idle time cut into stretches of one cause each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Charges:
    """Stretches of idle time of one device, in time order, disjoint, covering all of its gaps.

    `start_ns`, `end_ns` int64; `cause` uint8, position in the `result.Cause` enumeration; `event` int64, row of the
    innermost host event the stretch is charged to, -1 where there is none; `launch` int64, row of the launch call the
    gap waited for, -1 for none; `track` int32, the host thread that supplied `event` (the launching thread where
    there is no event, -1 where neither is known); `gap` int64, number of the gap.
    """

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    cause: NDArray[np.uint8]
    event: NDArray[np.int64]
    launch: NDArray[np.int64]
    track: NDArray[np.int32]
    gap: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start_ns)
