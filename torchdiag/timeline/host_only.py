"""Where the driver thread's time went in a trace without device activity."""

from itertools import chain

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals, loader, places
from torchdiag.timeline.activity import Activities
from torchdiag.timeline.causes import POSITION, causes_of
from torchdiag.timeline.charges import Charges
from torchdiag.timeline.distinct import numbered
from torchdiag.timeline.host_states import HOST_KINDS, HostStates
from torchdiag.timeline.marks import NO_TRACK
from torchdiag.timeline.result import Cause, HostBreakdown, Place, Window
from torchdiag.timeline.sites import Landmarks
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Times = NDArray[np.int64]


def host_breakdown(
    trace: Trace, marks: NDArray[np.int64], driver: int, top: int | None, landmarks: Landmarks | None = None
) -> HostBreakdown:
    """The driver thread's time by its innermost event; the first five figures sum to the window exactly.

    The window runs from the first to the last of `marks` (int64, rows of step marks), without marks from the first to
    the last host event of the thread. Without a driver (-1) the thread with the most host events is taken. Time in a
    data loader's `__next__` is `dataloader`; operators are `operator`, runtime calls and the profiler's own work
    `runtime`, Python frames and annotations `python`. `places` are the `top` places of the covered time (None for
    all), longest first. `landmarks` are those of the trace, for whoever has them.
    """
    host = np.flatnonzero(HOST_KINDS[trace.kind])
    if driver == NO_TRACK:
        driver = int(np.bincount(trace.track[host]).argmax()) if len(host) else NO_TRACK
    window = _window(trace, marks, host[trace.track[host] == driver])
    start, end, event, loading = _pieces(trace, driver, window)
    length = end - start
    covered = event >= 0
    kind = np.where(covered, trace.kind[event], Kind.OTHER)
    figures = {
        "operator_ns": ~loading & (kind == Kind.OPERATOR),
        "runtime_ns": ~loading & ((kind == Kind.RUNTIME) | (kind == Kind.OVERHEAD)),
        "python_ns": ~loading & ((kind == Kind.PYTHON) | (kind == Kind.ANNOTATION)),
        "dataloader_ns": loading,
        "uncovered_ns": ~covered,
    }
    return HostBreakdown(
        window=window,
        thread=_thread(trace, driver),
        **{name: int(length[chosen].sum()) for name, chosen in figures.items()},
        cpu_active_ns=_operators(trace, window),
        places=_places(
            landmarks or Landmarks.of(trace),
            driver,
            (start[covered], end[covered], event[covered], loading[covered]),
            top,
        ),
    )


def _window(trace: Trace, marks: NDArray[np.int64], host: NDArray[np.int64]) -> Window:
    rows = marks if len(marks) else host
    if not len(rows):
        return Window(0, 0, "activity")
    start = trace.ts_ns[rows]
    end = int((start + trace.dur_ns[rows]).max())
    return Window(int(start.min()), end, "steps" if len(marks) else "activity")


def _pieces(trace: Trace, driver: int, window: Window) -> tuple[Times, Times, NDArray[np.int64], NDArray[np.bool_]]:
    """The window cut into pieces of one innermost event (-1 for none) each, and whether each is data loading."""
    start = np.array([window.start_ns], np.int64)
    end = np.array([window.end_ns], np.int64)
    tracks = [driver] if driver != NO_TRACK else []
    pieces = HostStates(trace, tracks, start, end).pieces(driver, start, end)
    loads = loader.loading(trace).get(driver)
    if loads is None:
        return pieces.start_ns, pieces.end_ns, pieces.event, np.zeros(len(pieces.event), np.bool_)
    start, end, whole = intervals.cut(pieces.start_ns, pieces.end_ns, np.stack(loads, axis=1).ravel())
    event = pieces.event[whole]
    return start, end, event, (event >= 0) & (intervals.inside(*loads, start) >= 0)


def _operators(trace: Trace, window: Window) -> int:
    rows = np.flatnonzero(trace.kind == Kind.OPERATOR)
    start = np.clip(trace.ts_ns[rows], window.start_ns, window.end_ns)
    end = np.clip(trace.ts_ns[rows] + trace.dur_ns[rows], window.start_ns, window.end_ns)
    order = np.argsort(start, kind="stable")
    return intervals.length(*intervals.union(start[order], end[order]))


def _places(
    landmarks: Landmarks,
    driver: int,
    pieces: tuple[Times, Times, NDArray[np.int64], NDArray[np.bool_]],
    top: int | None,
) -> tuple[Place, ...]:
    """The places of the pieces, whatever their cause. Pieces of one event are charged as one stretch."""
    trace = landmarks.trace
    start, end, event, loading = pieces
    key, which = numbered(event * 2 + loading)
    first = np.empty(len(key), np.int64)
    first[which[::-1]] = np.arange(len(which))[::-1]
    total = np.zeros(len(key), np.int64)
    np.add.at(total, which, end - start)
    cause = np.where(loading[first], POSITION[Cause.DATALOADER], causes_of(trace, event[first]))
    none = np.full(len(key), -1, np.int64)
    charges = Charges(
        start_ns=start[first],
        end_ns=start[first] + total,
        cause=cause,
        event=event[first],
        launch=none,
        track=np.full(len(key), driver, np.int32),
        gap=np.arange(len(key)),
    )
    causes = places.places(trace, [charges], _no_activities(), None, landmarks)
    return tuple(places.merged(chain.from_iterable(cause.places for cause in causes))[:top])


def _no_activities() -> Activities:
    empty = np.zeros(0, np.int64)
    return Activities(empty, empty, empty, empty, empty, np.zeros(0, np.uint8), empty)


def _thread(trace: Trace, driver: int) -> str:
    if driver == NO_TRACK:
        return "no thread"
    return f"process {trace.tracks.pids[driver]} thread {trace.tracks.tids[driver]}"
