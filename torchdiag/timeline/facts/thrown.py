"""Exceptions that were thrown and caught in the steady steps: those the trace shows, else those the run counted."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from torchdiag.history.run_result import PassName, RunResult
from torchdiag.timeline import intervals, recorded
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.stacks import Stacks
from torchdiag.trace.columns import NO_TEXT
from torchdiag.trace.vocabulary import STEP_MARK, Kind

Rows = NDArray[np.int64]

RECORDING_RATIO = 60
"""An exception that passes frames takes so many times as long while the recorder follows it from frame to frame: 42 to
82 times on Python 3.11 to 3.13, 190 where every frame has a `finally`."""
RAISED_NS = 300
"""A Python exception that is caught where it was raised takes about this long, and hardly longer if recorded."""
DOUBT = 2
"""What `RECORDING_RATIO` tells may be half or twice of it."""
HANDLED_NS = 1_000_000
"""What comes within this time after a C++ exception was caught may be its handling."""


@dataclass(frozen=True, eq=False)
class Thrown:
    """Exceptions of one type, raised at one place, that were caught.

    `cpp`: whether C++ threw them. `raised_at` and `handled_at` as recorded (`file:line:function`, a symbol of C++), ""
    where that is not known. `operators`: the operators that threw, "" if not known. `per_step`: how many in a step.
    `step_ns`: the time of a step that went into them, with the operators that they ended; `least_ns` and `most_ns` what
    that is at least and at most. `rows`: the recorded slices; the steps' marks where only the run counted them
    (`counted`). `failed`: the operators that these exceptions ended, of which nothing came. `handled` int64[k, 3]:
    pieces of threads (track, start and end in nanoseconds) from the end of each of those to what comes next; of Python
    exceptions that only the run counted, all time of the steps in which they can have been.
    """

    name: str
    cpp: bool
    raised_at: str
    handled_at: str
    operators: str
    per_step: float
    step_ns: float
    least_ns: float
    most_ns: float
    rows: Rows
    failed: Rows
    handled: Rows
    counted: bool


def thrown(facts: Facts) -> tuple[Thrown, ...]:
    """What was thrown and caught in most steady steps, the longest in a step first.

    The detailed recording of a run has no exceptions in it, and those that were counted belong to the light one: it
    tells of none.
    """
    run = facts.run
    if run is not None and run.trace is not None and run.detail == Path(facts.trace.path):
        return ()
    seen = [*_in_trace(facts, cpp=True), *_in_trace(facts, cpp=False)]
    for cpp in (True, False):
        if not any(item.cpp == cpp for item in seen):
            seen += _counted(facts, cpp=cpp)
    return tuple(sorted(seen, key=lambda item: -item.step_ns))


def _in_trace(facts: Facts, *, cpp: bool) -> list[Thrown]:
    trace, times = facts.trace, facts.get(steady)
    rows = times.rows(facts, recorded.rows_of(trace, "throw" if cpp else "exception"))
    raised, handled = (column.at(rows, NO_TEXT).tolist() for column in (trace.args.raised_at, trace.args.handled_at))
    groups: dict[tuple[int, int, int], list[int]] = {}
    for row, *place in zip(rows.tolist(), raised, handled, strict=True):
        groups.setdefault((int(trace.name[row]), place[0], place[1]), []).append(row)
    operators = recorded.throwing_operators(trace) if cpp and groups else {}
    found: list[Thrown] = []
    for (name, raised_at, handled_at), members in groups.items():
        chosen = np.array(members, np.int64)
        if not times.in_most(trace.ts_ns[chosen]):
            continue
        failed = _failed(facts, chosen) if cpp else chosen[:0]
        after = _handled(facts, chosen, failed)
        flight = float(np.maximum(trace.dur_ns[chosen], 0).sum())
        if cpp:
            least, cost, most = _amounts(facts, chosen, failed, after)
        else:
            result = facts.run.result if facts.run is not None else None
            longer = _longer_ns(result, "light") * len(times)
            least, cost, most = _without_recorder(flight, len(chosen), flight - longer)
        found.append(
            Thrown(
                trace.names[name],
                cpp,
                _text(facts, raised_at),
                _text(facts, handled_at),
                operators.get(trace.names[name], ""),
                len(chosen) / len(times),
                cost / len(times),
                least / len(times),
                most / len(times),
                chosen,
                failed,
                after,
                counted=False,
            )
        )
    return found


def _amounts(facts: Facts, rows: Rows, failed: Rows, after: Rows) -> tuple[float, float, float]:
    """Nanoseconds from throw to catch; with the operators that ended by it; with what came after as well."""
    trace = facts.trace
    start, length = trace.ts_ns[rows], np.maximum(trace.dur_ns[rows], 0)
    starts = [start, trace.ts_ns[failed], after[:, 1]]
    ends = [start + length, trace.ts_ns[failed] + trace.dur_ns[failed], after[:, 2]]
    amounts: list[float] = []
    for count in (1, 2, 3):
        begin, end = np.concatenate(starts[:count]), np.concatenate(ends[:count])
        order = np.argsort(begin, kind="stable")
        amounts.append(float(intervals.length(*intervals.union(begin[order], end[order]))))
    return amounts[0], amounts[1], amounts[2]


def _without_recorder(flight_ns: float, count: float, most_ns: float) -> tuple[float, float, float]:
    """The least, the likely and the most that Python exceptions take by themselves, of `flight_ns` as recorded."""
    likely = min(flight_ns, count * RAISED_NS + flight_ns / RECORDING_RATIO)
    return likely / DOUBT, likely, min(max(likely * DOUBT, most_ns), flight_ns)


def _counted(facts: Facts, *, cpp: bool) -> list[Thrown]:
    run = facts.run.result if facts.run is not None else None
    result = run.recorder if run is not None else None
    times = facts.get(steady)
    marks = times.rows(facts, named(facts.trace, Kind.ANNOTATION, lambda name: name.startswith(STEP_MARK)))
    if run is None or result is None or not result.steps or not len(marks):
        return []
    none, nothing, outside = marks[:0], np.empty((0, 3), np.int64), _outside(facts, marks)
    if cpp:
        return [
            Thrown(
                item.type, True, item.symbol or item.library, "", "", item.count / result.steps,
                amount, amount, amount, marks, none, nothing, counted=True,
            )
            for item in result.throws or ()
            if item.count >= result.steps
            for amount in [item.total_ns / result.steps]
        ]  # fmt: skip
    found: list[Thrown] = []
    for item in result.exceptions or ():
        if item.count < result.steps or not item.handled_at:
            continue
        flight = item.total_ns / result.steps
        own = (result.exception_cost_ns or 0.0) * item.count / result.steps
        least, cost, most = _without_recorder(
            flight, item.count / result.steps, flight - max(_longer_ns(run, "exceptions"), own)
        )
        found.append(
            Thrown(
                item.type, False, item.raised_at, item.handled_at, "", item.count / result.steps,
                cost, least, most, marks, none, outside, counted=True,
            )
        )  # fmt: skip
    return found


def _longer_ns(run: RunResult | None, name: PassName) -> float:
    """How much longer a step of a pass took than one that nobody watched; 0 where either was not measured."""
    watched, timed = (run.find(name), run.find("timed")) if run is not None else (None, None)
    if watched is None or timed is None:
        return 0.0
    return float(max((watched.median_ns or 0) - (timed.median_ns or 0), 0))


def _failed(facts: Facts, rows: Rows) -> Rows:
    """The operators that end before what was thrown in them is caught."""
    trace = facts.trace
    thread = recorded.threads(trace)[trace.track[rows]]
    operators = np.flatnonzero(trace.kind == Kind.OPERATOR)
    around = Stacks(trace, operators).outermost(thread, trace.ts_ns[rows])
    known = around >= 0
    around, caught = around[known], (trace.ts_ns[rows] + trace.dur_ns[rows])[known]
    return np.unique(around[trace.ts_ns[around] + trace.dur_ns[around] <= caught])


def _handled(facts: Facts, rows: Rows, failed: Rows) -> Rows:
    """int64[k, 3]: from the end of each failed operator until the next event of its thread, or its step's end.

    In that time the exception is formatted, raised in Python and handled. Where the program does something else that no
    event tells of, that is in it as well, up to `HANDLED_NS` and to twice what it usually is.
    """
    trace, times = facts.trace, facts.get(steady)
    host = np.flatnonzero(np.isin(trace.kind, (Kind.OPERATOR, Kind.PYTHON, Kind.RUNTIME, Kind.ANNOTATION)))
    caught = np.sort(trace.ts_ns[rows] + np.maximum(trace.dur_ns[rows], 0))
    pieces: list[Rows] = []
    for track in set(trace.track[failed].tolist()):
        mine = failed[trace.track[failed] == track]
        begun = np.sort(trace.ts_ns[host[trace.track[host] == track]])
        start = trace.ts_ns[mine] + trace.dur_ns[mine]
        reach = caught[np.minimum(np.searchsorted(caught, start), len(caught) - 1)]
        place = np.searchsorted(begun, start)
        following = np.append(begun, np.iinfo(np.int64).max)[place]
        over = times.end_ns[np.maximum(times.of(trace.ts_ns[mine]), 0)]
        end = np.maximum(np.minimum(np.minimum(following, over), reach + HANDLED_NS), start)
        pieces.append(np.column_stack((np.full(len(mine), track, np.int64), start, end)))
    if not pieces:
        return np.empty((0, 3), np.int64)
    track, start, end = np.concatenate(pieces).T
    usual = int(np.median(end - start))
    return np.column_stack((track, start, np.minimum(end, start + DOUBT * usual)))


def _outside(facts: Facts, marks: Rows) -> Rows:
    """int64[k, 3]: the time of steps outside operators and C++ exceptions, which is where Python raises."""
    trace = facts.trace
    thread = recorded.threads(trace)[trace.track]
    within = np.flatnonzero(trace.kind == Kind.OPERATOR)
    within = np.concatenate((within, recorded.rows_of(trace, "throw")))
    pieces: list[Rows] = []
    for mark in marks.tolist():
        mine = within[thread[within] == trace.track[mark]]
        mine = mine[np.argsort(trace.ts_ns[mine], kind="stable")]
        low, high = int(trace.ts_ns[mark]), int(trace.ts_ns[mark] + trace.dur_ns[mark])
        begun = np.clip(trace.ts_ns[mine], low, high)
        ended = np.clip(trace.ts_ns[mine] + trace.dur_ns[mine], low, high)
        start, end = intervals.between(*intervals.union(begun, ended), low, high)
        pieces.append(np.column_stack((np.full(len(start), trace.track[mark], np.int64), start, end)))
    return np.concatenate(pieces)


def _text(facts: Facts, code: int) -> str:
    return facts.trace.texts[code] if code != NO_TEXT else ""
