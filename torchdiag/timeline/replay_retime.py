"""What changes do to the lags of a replay's edges."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag._native.replay import NO_EDGE
from torchdiag.timeline import intervals
from torchdiag.timeline.changes import Change
from torchdiag.timeline.distinct import among, distinct, numbered
from torchdiag.timeline.replay_calls import Calls
from torchdiag.timeline.replay_graph import Family, Graph
from torchdiag.timeline.replay_lanes import NONE, Lanes
from torchdiag.timeline.replay_lines import Lines, Stretches
from torchdiag.timeline.shortened import shortened, stretches_of
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Call

Times = NDArray[np.int64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

SUBMISSION_NS = 5_000
"""What a call takes to submit work, where a trace has none that only does that."""

PLAIN_COST_NS = 10_000
"""What of a call that waits for nothing known is its own doing; the rest is waiting for something unknown."""

LONGEST_NS = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class Retiming:
    """What changes are applied to. `waiting` are the stretches of threads that vanish when there is no waiting."""

    trace: Trace
    lines: Lines
    lanes: Lanes
    calls: Calls
    graph: Graph
    waiting: Stretches
    group: Numbers
    submission_ns: int

    @classmethod
    def of(cls, trace: Trace, lines: Lines, lanes: Lanes, calls: Calls, graph: Graph, waiting: Stretches) -> "Retiming":
        """The facts, and those that follow from them."""
        plain = distinct(lanes.launch[lanes.launch >= 0])
        plain = plain[~among(plain, calls.row)]
        plain = plain[(trace.call[plain] == Call.COPY) | (trace.call[plain] == Call.LAUNCH)]
        usual = int(np.quantile(trace.dur_ns[plain], 0.5)) if len(plain) else SUBMISSION_NS
        return cls(trace, lines, lanes, calls, graph, waiting, _groups(calls), usual)

    def removed(self, changes: Sequence[Change]) -> Flags:
        """bool[a]: the activities that no longer run."""
        return among(self.lanes.row, self._rows(*(change.removed for change in changes)))

    def shares(self, changes: Sequence[Change]) -> NDArray[np.float64]:
        """float64[a]: what is left of each activity's time."""
        share = np.full(len(self.lanes), np.inf)
        for change in changes:
            named = among(self.lanes.row, self._rows(change.scaled))
            share[named] = np.minimum(share[named], change.device_scale)
        share[np.isinf(share)] = 1.0
        share[self.removed(changes)] = 0.0
        return share

    def durations(self, changes: Sequence[Change]) -> Times:
        """int64[a]: how long each activity takes."""
        return scaled(self.lanes.end_ns - self.lanes.start_ns, self.shares(changes))

    def lags(self, changes: Sequence[Change]) -> Times:
        """int64[e]: the lag of each edge, the duration of its activity included."""
        edges = self.graph.edges
        lag = edges.lag_ns.copy()
        removed = self.removed(changes)
        free, idle = self._freed(changes, self._gone(removed))
        self._shrink(lag, changes, idle)
        if removed.any():
            node = self.graph.order[edges.target] - len(self.lines)
            work = np.flatnonzero((edges.family == Family.LAUNCH) | (edges.family == Family.STREAM))
            work = work[removed[node[work]]]
            lag[work] = np.minimum(lag[work], 0)
        lasting = np.flatnonzero(edges.activity != NONE)
        lag[lasting] += self.durations(changes)[edges.activity[lasting]]
        if free.any():
            lag[(edges.call != NONE) & free[edges.call]] = NO_EDGE
        return lag

    def _rows(self, *several: Numbers) -> Numbers:
        """All rows of several, checked to be rows of the trace."""
        rows = np.concatenate([np.empty(0, np.int64), *several]).astype(np.int64)
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self.trace):
            raise ValueError(f"a change names a row that the trace of {len(self.trace)} rows does not have")
        return rows

    def _gone(self, removed: Flags) -> Numbers:
        """Rows of the launch calls whose activities are all removed."""
        launch = self.lanes.launch[removed]
        left = self.lanes.launch[~removed]
        launch = launch[launch >= 0]
        return launch[~among(launch, left)]

    def _freed(self, changes: Sequence[Change], gone: Numbers) -> tuple[Flags, Stretches]:
        """Which calls no longer wait (bool[c]), and the stretches of threads that go with them."""
        calls, trace = self.calls, self.trace
        rows = self._rows(*(change.unblocked for change in changes), gone)
        if not len(rows):
            return np.zeros(len(calls), np.bool_), Stretches.none()
        named = among(calls.row, rows)
        free = among(self.group, self.group[named])  # calls within one another are one wait under two names
        whole = stretches_of(trace, rows)
        for track in distinct(whole.track).tolist():
            here = np.flatnonzero(whole.track == track)
            here = here[np.argsort(whole.start_ns[here], kind="stable")]
            since, until = intervals.union(whole.start_ns[here], whole.end_ns[here])
            place = intervals.inside(since, until, calls.start_ns)
            inside = (place >= 0) & (calls.track == track)
            inside[inside] = calls.end_ns[inside] <= until[place[inside]]
            free |= inside
        submits = among(rows, self.lanes.launch) & ~among(rows, gone)
        end = np.where(submits, np.maximum(whole.end_ns - self.submission_ns, whole.start_ns), whole.end_ns)
        mates = free & ~named & ~calls.submits
        return free, Stretches.join(
            Stretches(whole.track, whole.start_ns, end),
            Stretches(calls.track[mates], calls.start_ns[mates], calls.end_ns[mates]),
        )

    def _shrink(self, lag: Times, changes: Sequence[Change], idle: Stretches) -> None:
        """Set the lags of threads to what is left of them. `idle` are stretches that cost nothing any more."""
        self._rows(*(change.shortened for change in changes), *(change.runs.ravel() for change in changes))
        shorter = [(change.host_scale, shortened(self.trace, change)) for change in changes]
        shorter = sorted(((scale, some) for scale, some in shorter if len(some)), key=lambda item: item[0])
        if not shorter and not len(idle):
            return
        lines, graph, calls = self.lines, self.graph, self.calls
        length = np.diff(lines.instant_ns, prepend=0)
        covered = Stretches.join(self.waiting, idle)
        left = length - lines.covered_ns(covered)
        unknown = ~calls.waited
        # A call that lies in a shortened frame still waits for whatever it waited for.
        covered = Stretches.join(
            covered, Stretches(calls.track[unknown], calls.start_ns[unknown], (calls.end_ns - PLAIN_COST_NS)[unknown])
        )
        before = lines.covered_ns(covered)
        for scale, stretches in shorter:
            covered = Stretches.join(covered, stretches)
            after = lines.covered_ns(covered)
            taken = after - before
            left -= taken - scaled(taken, np.full(len(taken), scale))
            before = after
        thread = np.flatnonzero(graph.edges.family == Family.THREAD)
        node = graph.order[graph.edges.target[thread]]
        rest = np.where(lines.covered_ns(idle)[node] > 0, 0, graph.rest_ns[thread])
        lag[thread] = left[node] + rest


def scaled(duration_ns: Times, share: NDArray[np.float64]) -> Times:
    """int64: a share of each duration, to the nearest nanosecond; no more than the whole for a share up to 1."""
    part = np.rint(np.minimum(duration_ns * share, float(LONGEST_NS))).astype(np.int64)
    return np.where(share == 1, duration_ns, np.where(share < 1, np.minimum(part, duration_ns), part))


def _groups(calls: Calls) -> Numbers:
    """int64[c]: a number for each set of calls of one thread that lie within one another or overlap."""
    if not len(calls):
        return np.empty(0, np.int64)
    instants, rank = numbered(np.concatenate((calls.start_ns, calls.end_ns)))
    key = calls.track * (len(instants) + 1)
    reached = np.maximum.accumulate(key + rank[len(calls) :])
    fresh = np.ones(len(calls), np.bool_)
    fresh[1:] = (key + rank[: len(calls)])[1:] >= reached[:-1]
    return np.cumsum(fresh, dtype=np.int64)
