"""Stretches in which a thread does nothing while another one runs Python: who waits for whose interpreter."""

import re

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import HOST_KINDS, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.marks import NO_TRACK
from torchdiag.trace.vocabulary import STEP_MARK, Kind

Rows = NDArray[np.int64]
Times = NDArray[np.int64]

HOLE_NS = 2_000_000
"""Python lets another thread have its turn after 5 ms; ordinary Python between two events takes far less than this."""
COVERED = 0.8
RELEASES = re.compile(
    r"^<built-in|\): (wait|acquire|get|put|join|sleep|select|poll|recv\w*|read\w*|accept|_wait\w*|run|_bootstrap\w*)$"
)
"""Frames in which a thread waits without holding the interpreter, or that are around a thread's whole life."""


def starved(facts: Facts) -> tuple[Times, Rows]:
    """How long the driver's holes are (int64[k], ns, in steady steps) and the frames of other threads that fill them.

    A hole is time between the starts and ends of the driver's own events, outside of operators and runtime calls, that
    innermost Python frames of one other thread cover by at least 80 %.
    """
    trace, driver = facts.trace, facts.partition.driver
    python = np.flatnonzero(trace.kind == Kind.PYTHON)
    others = python[trace.track[python] != driver]
    if driver == NO_TRACK or not len(others):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    marks = trace.names.codes_where(lambda name: name.startswith(STEP_MARK))
    mine = np.flatnonzero((trace.track == driver) & np.isin(trace.kind, HOST_KINDS))
    mine = mine[~marks[trace.name[mine]]]
    native = mine[np.isin(trace.kind[mine], (Kind.OPERATOR, Kind.RUNTIME, Kind.OVERHEAD))]
    instants = np.sort(np.concatenate((trace.ts_ns[mine], trace.ts_ns[mine] + trace.dur_ns[mine])))
    low, high = instants[:-1], instants[1:]
    long = (high - low >= HOLE_NS) & (facts.get(steady).of(low) >= 0)
    start, end = _union(facts, native)
    long &= intervals.inside(start, end, low) < 0 if len(start) else long
    low, high = low[long], high[long]
    inner = np.ones(len(trace), np.bool_)
    parent = facts.get(nesting).parent
    inner[parent[parent >= 0]] = False
    holding = trace.names.codes_where(lambda name: RELEASES.search(name) is None)
    others = others[inner[others] & holding[trace.name[others]]]
    filled, frames = np.zeros(len(low), np.bool_), [np.empty(0, np.int64)]
    for track in set(trace.track[others].tolist()):
        rows = others[trace.track[others] == track]
        start, end = _union(facts, rows)
        covered = _covered_before(start, end, high) - _covered_before(start, end, low)
        found = ~filled & (covered >= COVERED * (high - low))
        inside = intervals.inside(low[found], high[found], trace.ts_ns[rows]) >= 0
        frames.append(rows[inside])
        filled |= found
    return (high - low)[filled], np.unique(np.concatenate(frames))


def _covered_before(start: Times, end: Times, instant: Times) -> Times:
    """How much of disjoint, ascending intervals lies before each instant."""
    whole = np.concatenate(([0], np.cumsum(end - start)))
    place = np.searchsorted(start, instant, side="right") - 1
    known = np.maximum(place, 0)
    return np.where(place >= 0, whole[known] + np.minimum(instant, end[known]) - start[known], 0)


def _union(facts: Facts, rows: Rows) -> tuple[Times, Times]:
    start = facts.trace.ts_ns[rows]
    order = np.argsort(start, kind="stable")
    return intervals.union(start[order], (start + facts.trace.dur_ns[rows])[order])
