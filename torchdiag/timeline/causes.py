"""Why a device was idle: its gaps charged to what the host did, or to what the launched work waited for."""

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import host_view, intervals
from torchdiag.timeline.charges import Charges
from torchdiag.timeline.device_states import Gaps
from torchdiag.timeline.host_states import HostStates
from torchdiag.timeline.host_view import View
from torchdiag.timeline.result import Cause
from torchdiag.timeline.waits import Waits
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Call, Kind

Times = NDArray[np.int64]

LAUNCH_LATENCY_NS = 50_000
"""What a launched kernel may take to start before the wait is put down to the queue."""

POSITION = {cause: np.uint8(position) for position, cause in enumerate(Cause)}

CAUSE_OF_CALL = {
    Call.SYNC: Cause.SYNC,
    Call.ALLOCATION: Cause.ALLOCATION,
    Call.LAUNCH: Cause.LAUNCH,
    Call.COPY: Cause.COPY_CALL,
    Call.OTHER: Cause.RUNTIME,
}
CAUSE_OF_KIND = {
    Kind.OPERATOR: Cause.FRAMEWORK,
    Kind.OVERHEAD: Cause.PROFILER,
    Kind.PYTHON: Cause.PYTHON,
    Kind.ANNOTATION: Cause.PYTHON,
}


def charge(
    trace: Trace,
    gaps: Gaps,
    waits: Waits,
    driver: int,
    states: HostStates,
    loading: dict[int, tuple[Times, Times]],
) -> Charges:
    """Charge every nanosecond of the gaps to one cause."""
    views = host_view.see(states, gaps.start_ns, waits.host_end_ns, waits.track, driver)
    parts = [host_part(trace, view, waits, loading) for view in views]
    return join([*parts, *device_parts(gaps, waits)])


def host_part(trace: Trace, view: View, waits: Waits, loading: dict[int, tuple[Times, Times]]) -> Charges:
    """The charges for what the host did."""
    for track, stretches in loading.items():
        if np.any(view.track == track):
            view = host_view.cut_at(view, np.stack(stretches, axis=1).ravel())
    cause = causes_of(trace, view.event)
    seen = view.event >= 0
    for track, stretches in loading.items():
        mine = np.flatnonzero(seen & (view.track == track))
        loads = intervals.inside(*stretches, view.start_ns[mine]) >= 0
        cause[mine[loads]] = POSITION[Cause.DATALOADER]
    return Charges(
        start_ns=view.start_ns,
        end_ns=view.end_ns,
        cause=cause,
        event=view.event,
        launch=waits.launch[view.stretch],
        track=np.where(seen, view.track, waits.track[view.stretch]),
        gap=view.stretch,
    )


def causes_of(trace: Trace, event: NDArray[np.int64]) -> NDArray[np.uint8]:
    """uint8[k]: the cause that each innermost event stands for; `python` where there is none (-1)."""
    table = np.full((len(Kind), len(Call)), POSITION[Cause.PYTHON], np.uint8)
    for kind, cause in CAUSE_OF_KIND.items():
        table[kind] = POSITION[cause]
    for call, cause in CAUSE_OF_CALL.items():
        table[Kind.RUNTIME, call] = POSITION[cause]
    return np.where(event >= 0, table[trace.kind[event], trace.call[event]], POSITION[Cause.PYTHON])


def device_parts(gaps: Gaps, waits: Waits) -> list[Charges]:
    """The charges for what is left of each gap once the host had launched: latency, queue, or no idea."""
    known = (waits.launch >= 0) & ~waits.trailing
    submitted = waits.host_end_ns > gaps.start_ns
    latency = np.where(known & submitted, LAUNCH_LATENCY_NS, 0)
    started = np.minimum(waits.host_end_ns + latency, gaps.end_ns)
    end = np.where(waits.trailing, started, gaps.end_ns)
    return [
        rest(waits.host_end_ns, started, Cause.LAUNCH_LATENCY, waits),
        rest(started, np.where(known, end, started), Cause.QUEUED, waits),
        rest(started, np.where(known, started, end), Cause.UNATTRIBUTED, waits),
    ]


def rest(start: Times, end: Times, cause: Cause, waits: Waits) -> Charges:
    """One charge for each gap where `end` is later than `start`."""
    gap = np.flatnonzero(end > start)
    return Charges(
        start_ns=start[gap],
        end_ns=end[gap],
        cause=np.full(len(gap), POSITION[cause]),
        event=np.full(len(gap), -1),
        launch=waits.launch[gap],
        track=waits.track[gap],
        gap=gap,
    )


def join(parts: list[Charges]) -> Charges:
    """Charges of disjoint stretches in one, by time."""
    order = np.argsort(np.concatenate([part.start_ns for part in parts]), kind="stable")
    columns = ("start_ns", "end_ns", "cause", "event", "launch", "track", "gap")
    return Charges(*(np.concatenate([getattr(part, column) for part in parts])[order] for column in columns))
