"""What a what-if takes away from a trace."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def no_rows() -> Rows:
    """No rows at all."""
    return np.empty(0, np.int64)


def no_runs() -> Rows:
    """No runs of events."""
    return np.empty((0, 2), np.int64)


def no_pieces() -> Rows:
    """No pieces of threads."""
    return np.empty((0, 3), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What no longer happens, or takes less time. All are int64 rows of the trace, in any order, repeats allowed.

    Several changes may name the same row; the one that leaves the least of it counts. Raises ValueError for a scale
    that is negative or no number.
    """

    unblocked: Rows = field(default_factory=no_rows)
    """Calls that no longer wait for the device, nor cost the host anything; so do calls within them. A call that also
    submits work (a blocking copy) still submits it, at what submitting usually costs."""

    shortened: Rows = field(default_factory=no_rows)
    """Host events (operators, frames, calls, annotations, collections) whose interval on their thread shrinks to
    `host_scale` of it. What they launch still happens, and what they wait for is still waited for."""

    runs: Rows = field(default_factory=no_runs)
    """int64[k, 2]: stretches of a thread from the start of one host event to the end of a later one, with whatever lies
    between them; they shrink as `shortened` does."""

    pieces: Rows = field(default_factory=no_pieces)
    """int64[k, 3]: pieces of threads that are no whole events (track, start and end in nanoseconds); they shrink as
    `shortened` does."""

    host_scale: float = 0.0
    """Share (0..1) that is left of `shortened`, `runs` and `pieces`."""

    removed: Rows = field(default_factory=no_rows)
    """Device activities that no longer run. A launch call goes when all of its activities do."""

    scaled: Rows = field(default_factory=no_rows)
    """Device activities that take `device_scale` of their time."""

    device_scale: float = 1.0
    """Share (0..1, more for slower ones) that is left of `scaled`."""

    def __post_init__(self) -> None:
        for scale in (self.host_scale, self.device_scale):
            if not (math.isfinite(scale) and scale >= 0):
                raise ValueError(f"a scale of {scale} is not a share of a time")
