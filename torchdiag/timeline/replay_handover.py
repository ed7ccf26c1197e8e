"""Work that one host thread hands to another and waits for: the backward pass, above all.

The driver calls into the autograd engine, whose own thread then launches the backward pass while the driver does
nothing. No event of a trace says so; it shows in the times. Where another thread begins after having been idle while
the driver was not, the driver's doings have woken it. Where the driver does nothing until another thread's work is
done, it has waited for that.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.host_states import HOST_KINDS
from torchdiag.timeline.replay_lines import Stretches
from torchdiag.timeline.replay_scope import Scope
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Times = NDArray[np.int64]
Numbers = NDArray[np.int64]

IDLE_NS = 20_000
"""A thread that does nothing for this long may be waiting for another."""

WORKING = (Kind.OPERATOR, Kind.RUNTIME)
"""Kinds of events that show a thread at work; a Python frame may cover nothing but waiting."""


@dataclass(frozen=True, slots=True, eq=False)
class Handovers:
    """Instants at which one thread waits for another: `track` waits for `other` to come to the same instant.

    `idle` are the stretches that such waiting fills, and that vanish when it does. All int64.
    """

    track: Numbers
    other: Numbers
    instant_ns: Times
    idle: Stretches


def handovers_of(trace: Trace, scope: Scope, tracks: NDArray[np.bool_]) -> Handovers:
    """The hand-overs between the driver and the other threads (bool by track) that are replayed."""
    others = [number for number in np.flatnonzero(tracks).tolist() if number != scope.driver]
    rows = np.flatnonzero(HOST_KINDS[trace.kind] & tracks[trace.track])
    start = trace.ts_ns[rows]
    end = start + trace.dur_ns[rows]
    inside = (start < scope.end_ns) & (end > scope.start_ns)
    rows, start, end = rows[inside], start[inside], end[inside]
    own = trace.track[rows] == scope.driver
    boundary = np.sort(np.concatenate((start[own], end[own], [scope.start_ns, scope.end_ns])))
    boundary = boundary[(boundary >= scope.start_ns) & (boundary <= scope.end_ns)]
    calls = np.flatnonzero(own & (trace.kind[rows] == Kind.RUNTIME))
    called = intervals.union(*_by_start(start[calls], end[calls]))
    working = np.zeros(256, np.bool_)
    working[list(WORKING)] = True
    woken: list[tuple[Numbers, Numbers, Times, Times]] = []
    for other in others:
        here = (trace.track[rows] == other) & working[trace.kind[rows]]
        busy = intervals.union(*_by_start(np.maximum(start[here], scope.start_ns), np.minimum(end[here], scope.end_ns)))
        woken.append(_woken(other, scope, busy, boundary))
        woken.append(_joined(other, scope, busy, boundary, called))
    if not woken:
        none = np.empty(0, np.int64)
        return Handovers(none, none, none, Stretches.none())
    track, other, since, instant = (np.concatenate([part[i] for part in woken]) for i in range(4))
    return Handovers(track, other, instant, Stretches(track, since, instant))


def _by_start(start: Times, end: Times) -> tuple[Times, Times]:
    order = np.argsort(start, kind="stable")
    return start[order], end[order]


def _woken(
    other: int, scope: Scope, busy: tuple[Times, Times], boundary: Times
) -> tuple[Numbers, Numbers, Times, Times]:
    """Where the other thread begins again after a rest in which the driver did something."""
    since = np.concatenate(([scope.start_ns], busy[1]))[: len(busy[0])]
    until = busy[0]
    between = np.searchsorted(boundary, until, side="left") - np.searchsorted(boundary, since, side="right")
    found = (until - since >= IDLE_NS) & (between > 0)
    count = int(np.count_nonzero(found))
    return np.full(count, other), np.full(count, scope.driver), since[found], until[found]


def _joined(
    other: int, scope: Scope, busy: tuple[Times, Times], boundary: Times, called: tuple[Times, Times]
) -> tuple[Numbers, Numbers, Times, Times]:
    """Where the driver goes on after a rest, outside of calls, in which the other thread finished."""
    silent = np.flatnonzero(np.diff(boundary) >= IDLE_NS)
    since, until = boundary[silent], boundary[silent + 1]
    free = intervals.inside(*called, since + (until - since) // 2) < 0
    since, until = since[free], until[free]
    none = np.empty(0, np.int64)
    if not len(busy[0]) or not len(since):
        return none, none, none, none
    last = np.searchsorted(busy[1], until, side="right") - 1  # the last work of the other thread that is done by then
    known = np.maximum(last, 0)
    done = busy[1][known]
    first = np.minimum(np.searchsorted(busy[1], since, side="right"), len(busy[0]) - 1)
    begun = np.maximum(since, busy[0][first])
    going_on = np.append(busy[0], np.iinfo(np.int64).max)[known + 1] < until
    found = (last >= 0) & (done > since) & ~going_on & (begun < done)
    count = int(np.count_nonzero(found))
    return np.full(count, scope.driver), np.full(count, other), begun[found], done[found]
