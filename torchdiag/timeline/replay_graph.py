"""The graph of a replay: instants as nodes, what each waits for as edges, with the lag that was measured."""

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import replay as native
from torchdiag.timeline.distinct import firsts
from torchdiag.timeline.replay_lanes import NONE

Times = NDArray[np.int64]
Numbers = NDArray[np.int64]


class Family(IntEnum):
    """Why a node waits for another. Within a node edges are in this order."""

    THREAD = 0
    """The instant before on the same host thread."""
    LAUNCH = 1
    """Work for the call that launched it."""
    STREAM = 2
    """Work for other work on the device."""
    CALL = 3
    """A waiting call's end for work, or a launch call's for a place in the queue."""
    HANDOVER = 4
    """A host thread for another."""
    END = 5
    """The end of it all for everything that must be done by then."""


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Edges in any order. `target` and `source` int64 are nodes: the target comes no sooner than `lag_ns` (int64) after
    the source, and after the duration of `activity` (int64, -1 for none), which is the source.

    `family` uint8; `call` int64 is the call (index into the waiting calls) that waits, -1 for none.
    """

    target: Numbers
    source: Numbers
    lag_ns: Times
    activity: Numbers
    family: NDArray[np.uint8]
    call: Numbers

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, part: NDArray[np.bool_] | Numbers) -> "Edges":
        return Edges(*(getattr(self, field.name)[part] for field in fields(self)))

    @classmethod
    def of(
        cls,
        family: Family,
        target: Numbers,
        source: Numbers,
        lag_ns: Times | int,
        *,
        activity: Numbers | int = NONE,
        call: Numbers | int = NONE,
    ) -> "Edges":
        """Edges of one family; single numbers stand for all."""
        size = len(target)
        return cls(
            target,
            source,
            np.broadcast_to(np.asarray(lag_ns, np.int64), size),
            np.broadcast_to(np.asarray(activity, np.int64), size),
            np.full(size, family, np.uint8),
            np.broadcast_to(np.asarray(call, np.int64), size),
        )

    @classmethod
    def join(cls, parts: "list[Edges]") -> "Edges":
        """All edges of several."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A graph ready to be timed: nodes in an order in which each comes after what it waits for.

    `place` int64[n]: where each node stands in that order, `order` int64[n]: which node stands where. `floor_ns`
    int64[n], in that order: what does not move, and the smallest number for what does. `first` int64[n + 1]: where the
    edges into each start. `edges` are sorted by target and name nodes by their place. `rest_ns` int64[e]: what an edge
    lasts beyond its own lag, for a reason that is not known.
    """

    place: Numbers
    order: Numbers
    floor_ns: Times
    first: Numbers
    edges: Edges
    rest_ns: Times

    def times(self, lag_ns: Times) -> Times:
        """int64[n]: when each node comes (by its number, not its place), with these lags of the edges."""
        return native.times(self.first, self.edges.source, lag_ns, self.floor_ns)[self.place]


def graph_of(measured_ns: Times, still: NDArray[np.bool_], duration_ns: Times, edges: Edges) -> Graph:
    """The graph in which every node comes exactly when it was measured.

    `measured_ns` int64[n]; `still` bool[n] are nodes that stay there whatever happens; `duration_ns` int64[a] of the
    activities. The lags of `edges` are the least that each can be. A lag that is more than was measured becomes what
    was measured. Of the edges of a node the one that held it up longest is given what is left: the node waited for it,
    and for something unknown after it.
    """
    nodes = len(measured_ns)
    edges = edges[~still[edges.target]]
    edges = edges[np.lexsort((edges.family, edges.target))]
    wish = np.argsort(measured_ns, kind="stable")
    order, kept = native.order(_first(edges.target, nodes), edges.source, wish)
    edges = edges[kept]
    held = np.zeros(nodes, np.bool_)
    held[edges.target] = True
    arrival = measured_ns[edges.source] + _durations(edges, duration_ns)
    room = measured_ns[edges.target] - arrival
    lag = np.minimum(edges.lag_ns, room)
    rest = np.zeros(len(edges), np.int64)
    last = _longest_held(edges.target, room - lag)
    rest[last] = (room - lag)[last]
    lag[last] = room[last]
    place = np.empty(nodes, np.int64)
    place[order] = np.arange(nodes)
    by_place = np.argsort(place[edges.target], kind="stable")
    moved = edges[by_place]
    target = place[moved.target]
    floor = np.where(held, native.NO_EDGE, measured_ns)[order]
    return Graph(
        place,
        order,
        floor,
        _first(target, nodes),
        Edges(target, place[moved.source], lag[by_place], moved.activity, moved.family, moved.call),
        rest[by_place],
    )


def _durations(edges: Edges, duration_ns: Times) -> Times:
    """The duration that each edge waits for besides its lag."""
    if not len(duration_ns):
        return np.zeros(len(edges), np.int64)
    return np.where(edges.activity == NONE, 0, duration_ns[edges.activity])


def _first(target: Numbers, nodes: int) -> Numbers:
    """Where the edges of each node start among edges sorted by target."""
    return np.searchsorted(target, np.arange(nodes + 1)).astype(np.int64)


def _longest_held(target: Numbers, slack: Times) -> Numbers:
    """The edge of each target with the least slack, the first of those; `target` is ascending."""
    first = firsts(target)
    if not len(first):
        return first
    least = np.repeat(np.minimum.reduceat(slack, first), np.diff(np.append(first, len(target))))
    tight = np.flatnonzero(slack == least)
    return tight[firsts(target[tight])]
