"""What a replay is made of, found piece by piece, and its graph, put together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.activity import Activities
from torchdiag.timeline.distinct import distinct
from torchdiag.timeline.forward import backward_operators
from torchdiag.timeline.replay_calls import Calls, calls_of
from torchdiag.timeline.replay_graph import Edges, Family, Graph, graph_of
from torchdiag.timeline.replay_handover import Handovers, handovers_of
from torchdiag.timeline.replay_lanes import NONE, Lanes, lanes_of
from torchdiag.timeline.replay_launches import Launches, launches_of
from torchdiag.timeline.replay_lines import Lines, Stretches
from torchdiag.timeline.replay_queue import Queue, queue_of
from torchdiag.timeline.replay_records import records_of
from torchdiag.timeline.replay_scope import Scope
from torchdiag.timeline.replay_streams import Follows, across, in_order
from torchdiag.trace.columns import Trace

Times = NDArray[np.int64]
Numbers = NDArray[np.int64]

MOST_THREADS = 256
"""Host threads that are replayed, those that launch most: bounds time. The work of others is taken for unlinked."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What was found in a trace within a scope."""

    trace: Trace
    scope: Scope
    lanes: Lanes
    launches: Launches
    calls: Calls
    queue: Queue
    handovers: Handovers
    follows: tuple[Follows, ...]

    @classmethod
    def of(cls, trace: Trace, activities: Activities, scope: Scope) -> "Parts":
        """Look for everything."""
        lanes = lanes_of(trace, activities, scope)
        tracks = threads(trace, lanes, scope)
        records = records_of(trace, lanes)
        launches = launches_of(trace, lanes, scope, tracks)
        linked = np.flatnonzero((lanes.launch >= 0) & (lanes.row != NONE))
        return cls(
            trace,
            scope,
            lanes,
            launches,
            calls_of(trace, lanes, scope, tracks, records),
            queue_of(trace, lanes, linked[tracks[trace.track[lanes.launch[linked]]]]),
            handovers_of(trace, scope, tracks),
            (in_order(lanes, launches.latency_ns), across(trace, lanes, records, launches.latency_ns)),
        )

    def lines(self) -> Lines:
        """The host threads, through every instant that matters."""
        scope, driver = self.scope, self.scope.driver
        queued = self._queued()
        tracks = [self.launches.track, self.calls.track, queued[0], self.handovers.track, self.handovers.other]
        instants = [self.launches.instant_ns, self.calls.end_ns, queued[1], *[self.handovers.instant_ns] * 2]
        present = distinct(np.concatenate([*tracks, np.array([driver])]))
        own = scope.borders_ns if scope.host_end_ns is None else np.append(scope.borders_ns, scope.host_end_ns)
        return Lines.through(
            np.concatenate([*tracks, np.full(len(own), driver), present]),
            np.concatenate([*instants, own, np.full(len(present), scope.start_ns)]),
        )

    def waiting(self) -> Stretches:
        """The stretches of threads that vanish when there is nothing to wait for."""
        calls, seen = self.calls, self.calls.waited
        in_calls = Stretches(calls.track[seen], calls.start_ns[seen], (calls.end_ns - calls.cost_ns)[seen])
        return Stretches.join(in_calls, self.queue.blocked, self.handovers.idle)

    def graph(self, lines: Lines, waiting: Stretches) -> Graph:
        """The instants of the host, then the starts of the activities, then the end, and what each waits for."""
        lanes, scope = self.lanes, self.scope
        measured = np.concatenate((lines.instant_ns, lanes.start_ns, [scope.end_ns]))
        still = measured <= scope.start_ns
        still[-1] = False
        edges = Edges.join([*self._on_hosts(lines, waiting), *self._on_devices(lines), *self._at_the_end(lines)])
        return graph_of(measured, still, lanes.end_ns - lanes.start_ns, edges)

    def _queued(self) -> tuple[Numbers, Times]:
        """Track and end of the calls that may have to wait for a place in the queue."""
        call = self.lanes.launch[self.queue.activity]
        return self.trace.track[call].astype(np.int64), self.trace.ts_ns[call] + self.trace.dur_ns[call]

    def _on_hosts(self, lines: Lines, waiting: Stretches) -> list[Edges]:
        calls, queue, handed, works = self.calls, self.queue, self.handovers, len(lines)
        node = np.flatnonzero(lines.follows)
        own = np.diff(lines.instant_ns, prepend=0) - lines.covered_ns(waiting)
        awaiting = lines.nodes(calls.track, calls.end_ns)[calls.edge_call]
        done = calls.edge_activity
        return [
            Edges.of(Family.THREAD, node, node - 1, own[node]),
            Edges.of(Family.CALL, awaiting, works + done, calls.edge_least_ns, activity=done, call=calls.edge_call),
            Edges.of(
                Family.CALL, lines.nodes(*self._queued()), works + queue.source, queue.least_ns, activity=queue.source
            ),
            Edges.of(
                Family.HANDOVER,
                lines.nodes(handed.track, handed.instant_ns),
                lines.nodes(handed.other, handed.instant_ns),
                0,
            ),
        ]

    def _on_devices(self, lines: Lines) -> list[Edges]:
        launches, works = self.launches, len(lines)
        leaving = lines.nodes(launches.track, launches.instant_ns)
        return [
            Edges.of(Family.LAUNCH, works + launches.activity, leaving, launches.least_ns),
            *(
                Edges.of(
                    Family.STREAM,
                    works + after.activity,
                    works + after.source,
                    after.least_ns,
                    activity=np.where(after.begun, NONE, after.source),
                )
                for after in self.follows
            ),
        ]

    def _at_the_end(self, lines: Lines) -> list[Edges]:
        scope, lanes, works = self.scope, self.lanes, len(lines)
        end = works + len(lanes)
        done = np.flatnonzero(lanes.counted)
        edges = [Edges.of(Family.END, np.full(len(done), end), works + done, 0, activity=done)]
        if scope.host_end_ns is not None:
            last = lines.nodes(np.array([scope.driver]), np.array([scope.host_end_ns]))
            edges.append(Edges.of(Family.END, np.array([end]), last, 0))
        return edges


def threads(trace: Trace, lanes: Lanes, scope: Scope) -> NDArray[np.bool_]:
    """bool by track: the driver, the threads that launch most, and those of the backward pass."""
    chosen = np.zeros(len(trace.tracks), np.bool_)
    count = np.bincount(trace.track[lanes.launch[lanes.launch >= 0]], minlength=len(trace.tracks))
    most = np.argsort(-count, kind="stable")[:MOST_THREADS]
    chosen[most[count[most] > 0]] = True
    chosen[distinct(trace.track[backward_operators(trace)])[:MOST_THREADS]] = True
    if scope.driver >= 0:
        chosen[scope.driver] = True
    return chosen
