"""What a what-if takes away from a measured step."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def _none() -> Rows:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Rows of a trace (int64, in any order, repeats allowed) and what becomes of them.

    `unblocked`: calls that no longer wait for the device and cost the host nothing; the device work of a copy stays.
    `shortened`: host events whose interval on their thread shrinks to `host_scale` (0..1) of its length; launches
    inside still happen, and so do waits inside that are not `unblocked`. `removed`: device activities that no longer
    run; a launch call goes when all that it launched is removed. `scaled`: device activities that take `device_scale`
    of their time.
    """

    unblocked: Rows = field(default_factory=_none)
    shortened: Rows = field(default_factory=_none)
    host_scale: float = 0.0
    removed: Rows = field(default_factory=_none)
    scaled: Rows = field(default_factory=_none)
    device_scale: float = 1.0
