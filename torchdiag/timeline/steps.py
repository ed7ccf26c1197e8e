"""The step table: what the devices and the host did in each step."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals, period
from torchdiag.timeline.activity import Activities
from torchdiag.timeline.result import Step
from torchdiag.timeline.step_groups import grouped
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Call, Kind

Times = NDArray[np.int64]


class Span(NamedTuple):
    """A step's name and its half-open time, in nanoseconds of the trace's clock."""

    name: str
    start_ns: int
    end_ns: int


def steps(
    trace: Trace, activities: Activities, marks: NDArray[np.int64]
) -> tuple[tuple[Step, ...], Literal["marks", "period", "none"]]:
    """The steps of a trace and where they come from.

    `marks` are rows of host step marks (int64, any order). Without any, the period of the trace is looked for.
    Kernels, copies and copied bytes belong to the step in which their launch call begins (their own start where that
    is not recorded), launches and synchronising calls to the step in which they begin, on whatever thread.
    `gpu_busy` is the share of the step in which a device has activity, a mean over the devices of the trace.
    """
    if len(marks):
        return grouped(_measure(trace, activities, marked(trace, marks))), "marks"
    spans = [Span(f"period#{number}", *span) for number, span in enumerate(period.periods(trace, activities))]
    return grouped(_measure(trace, activities, spans)), "period" if spans else "none"


def marked(trace: Trace, marks: NDArray[np.int64]) -> list[Span]:
    """The spans of step marks, in order of (start, end, row)."""
    start = trace.ts_ns[marks]
    end = start + trace.dur_ns[marks]
    order = np.lexsort((marks, end, start))
    return [Span(trace.names[int(trace.name[marks[i]])], int(start[i]), int(end[i])) for i in order.tolist()]


def submitted_ns(trace: Trace, activities: Activities) -> Times:
    """int64[n]: when each activity was launched; its own start where the launch call is not recorded."""
    return np.where(activities.launch >= 0, trace.ts_ns[activities.launch], activities.start_ns)


def _measure(trace: Trace, activities: Activities, spans: list[Span]) -> list[Step]:
    start = np.array([span.start_ns for span in spans], np.int64)
    end = np.array([span.end_ns for span in spans], np.int64)
    submitted, kind = submitted_ns(trace, activities), trace.kind[activities.row]
    copies = np.flatnonzero(kind == Kind.MEMCPY)
    copies = copies[np.argsort(submitted[copies], kind="stable")]
    copied = np.concatenate(([0], np.cumsum(trace.args.copied_bytes.at(activities.row[copies], 0))))
    first_copy, last_copy = np.searchsorted(submitted[copies], start), np.searchsorted(submitted[copies], end)
    counts = zip(
        _inside(np.sort(submitted[kind == Kind.KERNEL]), start, end),
        _inside(np.sort(trace.ts_ns[np.flatnonzero(trace.call == Call.LAUNCH)]), start, end),
        _inside(np.sort(trace.ts_ns[np.flatnonzero(trace.call == Call.SYNC)]), start, end),
        (last_copy - first_copy).tolist(),
        (copied[last_copy] - copied[first_copy]).tolist(),
        _busy(activities, start, end),
        strict=True,
    )
    return [
        Step(*span, gpu_busy=busy, kernels=kernels, launches=launches, syncs=syncs, copies=copies, copied_bytes=total)
        for span, (kernels, launches, syncs, copies, total, busy) in zip(spans, counts, strict=True)
    ]


def _inside(instants: Times, start: Times, end: Times) -> list[int]:
    """How many of the ascending instants each [start, end) holds."""
    return (np.searchsorted(instants, end) - np.searchsorted(instants, start)).tolist()


def _busy(activities: Activities, start: Times, end: Times) -> list[float] | list[None]:
    devices = activities.devices()
    if not devices:
        return [None] * len(start)
    share = np.zeros(len(start))
    for device in devices:
        here = activities.on(device)
        begin, finish = intervals.union(here.start_ns, here.end_ns)
        busy_ns = _covered_before(begin, finish, end) - _covered_before(begin, finish, start)
        share += busy_ns / np.maximum(end - start, 1)
    return (share / len(devices)).tolist()


def _covered_before(start: Times, end: Times, instant: Times) -> Times:
    """Time that disjoint, ascending intervals cover before each instant."""
    whole = np.concatenate(([0], np.cumsum(end - start)))
    place = np.searchsorted(start, instant)
    if not len(start):
        return np.zeros(len(instant), np.int64)
    last = np.maximum(place - 1, 0)
    return np.where(place > 0, whole[last] + np.minimum(instant, end[last]) - start[last], 0)
