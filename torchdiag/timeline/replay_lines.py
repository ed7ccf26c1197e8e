"""Host threads as lines of instants, and what of the time between them can shrink."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals

Times = NDArray[np.int64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """Stretches of host threads, in any order, that may overlap: `track`, `start_ns`, `end_ns`, all int64."""

    track: Numbers
    start_ns: Times
    end_ns: Times

    def __len__(self) -> int:
        return len(self.track)

    @classmethod
    def none(cls) -> "Stretches":
        """No stretches."""
        return cls(*(np.empty(0, np.int64) for _ in range(3)))

    @classmethod
    def join(cls, *several: "Stretches") -> "Stretches":
        """All of several."""
        return cls(
            np.concatenate([part.track for part in several]),
            np.concatenate([part.start_ns for part in several]),
            np.concatenate([part.end_ns for part in several]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Instants of host threads that matter, sorted by (track, instant), each once: the first nodes of a replay.

    `follows` bool: whether the instant before is one of the same thread.
    """

    track: Numbers
    instant_ns: Times
    follows: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.track)

    @classmethod
    def through(cls, track: Numbers, instant_ns: Times) -> "Lines":
        """The lines through the given instants (any order, repeats allowed)."""
        order = np.lexsort((instant_ns, track))
        track, instant_ns = track[order], instant_ns[order]
        same_track = np.zeros(len(order), np.bool_)
        same_track[1:] = track[1:] == track[:-1]
        fresh = ~same_track
        fresh[1:] |= instant_ns[1:] != instant_ns[:-1]
        return cls(track[fresh], instant_ns[fresh], same_track[fresh])

    def nodes(self, track: Numbers, instant_ns: Times) -> Numbers:
        """int64[m]: the node of each (track, instant); only for those that the lines run through."""
        found = np.empty(len(track), np.int64)
        for number, low, high in self.spans():
            asked = np.flatnonzero(track == number)
            found[asked] = low + np.searchsorted(self.instant_ns[low:high], instant_ns[asked])
        return found

    def spans(self) -> list[tuple[int, int, int]]:
        """(track, first node, node after the last) of each line."""
        first = np.flatnonzero(~self.follows)
        return list(zip(self.track[first].tolist(), first.tolist(), [*first[1:].tolist(), len(self)], strict=True))

    def covered_ns(self, stretches: Stretches) -> Times:
        """int64[n]: how much of the time since the instant before (on its line) the union of the stretches covers."""
        covered = np.zeros(len(self), np.int64)
        present = np.bincount(stretches.track, minlength=1) if len(stretches) else np.zeros(1, np.int64)
        for number, low, high in self.spans():
            if not 0 <= number < len(present) or not present[number] or high - low < 2:
                continue
            here = slice(None) if present[number] == len(stretches) else stretches.track == number
            start, end = stretches.start_ns[here], stretches.end_ns[here]
            order = np.argsort(start, kind="stable")
            start, end = intervals.union(start[order], end[order])
            covered[low + 1 : high] = np.diff(_covered_before(start, end, self.instant_ns[low:high]))
        return covered


def _covered_before(start: Times, end: Times, instant: Times) -> Times:
    """How much disjoint, ascending intervals cover before each instant (from the first of them on)."""
    if not len(start):
        return np.zeros(len(instant), np.int64)
    whole = np.concatenate(([0], np.cumsum(end - start)))
    last = np.searchsorted(start, instant, side="right") - 1
    known = np.maximum(last, 0)
    return np.where(last >= 0, whole[known] + np.minimum(instant, end[known]) - start[known], 0)
