"""Tensors that go to the host in the middle of a step, and what the host makes of them that goes back."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.copies import TO_DEVICE, TO_HOST, copies
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.frames import is_user
from torchdiag.timeline.loader import loader_events
from torchdiag.trace.vocabulary import STEP_MARK, Call, Kind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

LARGEST_NUMBER_BYTES = 8
"""A copy no larger than that is a number: whoever reads one does not compute on the host."""
TRIPS = 2
"""Without stacks, fewer trips than this in a step may as well be a result and the next input."""

COMPUTES = re.compile(
    r"(^|[/\\])(numpy|scipy|sklearn|cv2|PIL|pandas|numba|shapely|networkx|pycocotools|lap)[/\\]"
    r"|^<built-in method numpy of |\bof numpy\.|numpy\.ufunc|\blinear_sum_assignment\b|\bof cv2\b"
)
"""Python functions that compute on the host."""


@dataclass(frozen=True, eq=False)
class RoundTrips:
    """Copies to the host after which their thread issues nothing before it copies something back.

    One value a copy to the host: `out` int64[m], its call, ascending; `back` int64[m], the call of the copy back.
    Several tensors that are fetched together share the copy back.
    """

    out: Rows
    back: Rows

    def __len__(self) -> int:
        return len(self.out)

    def starts(self, calls: Rows) -> Mask:
        """bool[k]: which of the calls take something to the host that comes back."""
        return np.isin(calls, self.out)

    def of(self, calls: Rows) -> Rows:
        """int64[k]: the copy back of each of the calls, all of which start a trip."""
        return self.back[np.searchsorted(self.out, calls)]


def round_trips(facts: Facts) -> RoundTrips:
    """The round trips within steady steps."""
    trace, table = facts.trace, facts.get(copies)
    away = table.part((table.direction == TO_HOST) & (table.call >= 0) & (table.step >= 0) & table.blocks)
    away = away.part(away.size_bytes > LARGEST_NUMBER_BYTES)
    out, index = np.unique(away.call, return_index=True)
    back = _next_issued(facts, out)
    inward = table.call[(table.direction == TO_DEVICE) & (table.call >= 0)]
    likely = np.flatnonzero((back >= 0) & np.isin(back, inward))
    times = facts.get(steady)
    likely = likely[times.of(trace.ts_ns[back[likely]]) == away.step[index][likely]]
    out, back = out[likely], back[likely]
    kept = _within_one_step(facts, out, back)
    return RoundTrips(out[kept], back[kept])


def _next_issued(facts: Facts, calls: Rows) -> Rows:
    """int64[k]: what the thread of each call issues next that takes nothing to the host, -1 for nothing."""
    trace, table = facts.trace, facts.get(copies)
    issuing = np.isin(trace.call, (Call.LAUNCH, Call.COPY))
    issuing[table.call[table.call >= 0]] = True
    issuing[table.call[(table.direction == TO_HOST) & (table.call >= 0)]] = False
    rows = np.flatnonzero(issuing)
    rows = rows[np.lexsort((trace.ts_ns[rows], trace.track[rows]))]
    found = np.full(len(calls), -1, np.int64)
    for track in np.flatnonzero(np.bincount(trace.track[calls], minlength=1)).tolist():
        mine = np.flatnonzero(trace.track[calls] == track)
        here = rows[trace.track[rows] == track]
        place = np.searchsorted(trace.ts_ns[here], trace.ts_ns[calls[mine]], side="right")
        known = place < len(here)
        found[mine[known]] = here[place[known]]
    return found


def _within_one_step(facts: Facts, out: Rows, back: Rows) -> Mask:
    """bool[k]: trips for which there is evidence that they are no result and the next step's input."""
    trace, tree = facts.trace, facts.get(nesting)
    start, end = trace.ts_ns[out], trace.ts_ns[back]
    if not len(out):
        return np.zeros(0, np.bool_)
    kept = ~_any_between(facts, loader_events(trace), out, start, end)
    kept &= ~_any_between(
        facts, named(trace, Kind.ANNOTATION, lambda name: name.startswith(STEP_MARK)), out, start, end
    )
    if not np.any(trace.kind == Kind.PYTHON):
        step = facts.get(steady).of(start)
        trips = np.zeros(len(out), np.int64)
        for number in set(step.tolist()):
            trips[step == number] = len(set(back[step == number].tolist()))
        return kept & (facts.steps_source == "marks") & (trips >= TRIPS)
    users = tree.mask(named(trace, Kind.PYTHON, is_user))
    here, there = tree.nearest(out, users), tree.nearest(back, users)
    shared = (here >= 0) & ((here == there) | _encloses(facts, here, there) | _encloses(facts, there, here))
    outer = np.where(trace.ts_ns[np.maximum(here, 0)] <= trace.ts_ns[np.maximum(there, 0)], here, there)
    times = facts.get(steady)
    step = times.of(start)
    inside = shared & (trace.ts_ns[np.maximum(outer, 0)] >= times.start_ns[np.maximum(step, 0)])
    computed = _any_between(facts, named(trace, Kind.PYTHON, lambda name: bool(COMPUTES.search(name))), out, start, end)
    # Where no steps are known, a function around both may as well be the loop.
    inside &= computed | (not times.whole)
    return kept & (inside | (computed & (facts.steps_source == "marks")))


def _encloses(facts: Facts, outer: Rows, inner: Rows) -> Mask:
    """bool[k]: whether each event of `outer` encloses that of `inner`, both of one thread; False for -1."""
    trace = facts.trace
    known = (outer >= 0) & (inner >= 0)
    outer, inner = np.maximum(outer, 0), np.maximum(inner, 0)
    ends = trace.ts_ns + trace.dur_ns
    return known & (trace.ts_ns[outer] <= trace.ts_ns[inner]) & (ends[inner] <= ends[outer])


def _any_between(facts: Facts, rows: Rows, calls: Rows, start: NDArray[np.int64], end: NDArray[np.int64]) -> Mask:
    """bool[k]: whether one of the rows begins on the thread of each call in [start, end)."""
    trace = facts.trace
    found = np.zeros(len(calls), np.bool_)
    for track in np.flatnonzero(np.bincount(trace.track[calls], minlength=1)).tolist():
        mine = trace.track[calls] == track
        times = np.sort(trace.ts_ns[rows[trace.track[rows] == track]])
        found[mine] = np.searchsorted(times, end[mine]) > np.searchsorted(times, start[mine])
    return found
