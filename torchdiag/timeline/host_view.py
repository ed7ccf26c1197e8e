"""The host as seen from a thread: where that does nothing, the driver thread stands in."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.distinct import distinct
from torchdiag.timeline.host_states import HostStates
from torchdiag.timeline.marks import NO_TRACK

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Pieces of stretches: `start_ns`, `end_ns` int64, `stretch` int64, which stretch each is a piece of.

    `event` int64 is the row of the innermost event, -1 where neither thread has one; `track` int32 the thread that
    supplied it, meaningless where there is none.
    """

    start_ns: Times
    end_ns: Times
    event: NDArray[np.int64]
    track: NDArray[np.int32]
    stretch: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start_ns)

    def part(self, chosen: NDArray[np.bool_]) -> "View":
        """Some of the pieces."""
        return View(*(getattr(self, column)[chosen] for column in COLUMNS))


COLUMNS = ("start_ns", "end_ns", "event", "track", "stretch")


def see(states: HostStates, start_ns: Times, end_ns: Times, track: NDArray[np.int32], driver: int) -> list[View]:
    """What covers the stretches (disjoint, ascending), each seen from its own track; -1 is no thread.

    The views together hold every instant of the stretches once.
    """
    stretch = np.flatnonzero(end_ns > start_ns)
    views: list[View] = []
    unseen = [View(start_ns[:0], end_ns[:0], stretch[:0], track[:0], stretch[:0])]
    for number in distinct(track[stretch]).tolist():
        mine = stretch[track[stretch] == number]
        whole = View(start_ns[mine], end_ns[mine], np.full(len(mine), -1), track[mine], mine)
        if number in (NO_TRACK, driver):
            unseen.append(whole)
            continue
        view = look(states, number, whole)
        views.append(view.part(view.event >= 0))
        unseen.append(view.part(view.event < 0))
    left = join(unseen)
    return [*views, left if driver == NO_TRACK else look(states, driver, left)]


def look(states: HostStates, track: int, where: View) -> View:
    """What covers pieces (disjoint, ascending) on one thread."""
    pieces = states.pieces(track, where.start_ns, where.end_ns)
    tracks = np.full(len(pieces.event), track, np.int32)
    return View(pieces.start_ns, pieces.end_ns, pieces.event, tracks, where.stretch[pieces.stretch])


def join(views: list[View]) -> View:
    """Views of disjoint pieces in one, by time."""
    order = np.argsort(np.concatenate([view.start_ns for view in views]), kind="stable")
    return View(*(np.concatenate([getattr(view, column) for view in views])[order] for column in COLUMNS))


def cut_at(view: View, bounds: Times) -> View:
    """The pieces cut at ascending instants."""
    start, end, whole = intervals.cut(view.start_ns, view.end_ns, bounds)
    if len(whole) == len(view):
        return view
    return View(start, end, view.event[whole], view.track[whole], view.stretch[whole])
