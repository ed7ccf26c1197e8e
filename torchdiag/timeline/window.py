"""The stretch of time a breakdown covers, for each device."""

import numpy as np
from numpy.typing import NDArray

from torchdiag.errors import TorchdiagError
from torchdiag.timeline import selection
from torchdiag.timeline.activity import Activities
from torchdiag.timeline.result import Window
from torchdiag.trace.columns import MISSING, Trace
from torchdiag.trace.faults import COMPLETE, REACH_NS, faulty


def selected_marks(marks: NDArray[np.int64], steps: str | None) -> NDArray[np.int64]:
    """The marks that `steps` selects, all of them without a selection.

    Raises TorchdiagError when there is nothing to select from, or nothing is selected.
    """
    if steps is None:
        return marks
    wanted = selection.step_slice(steps)
    if not len(marks):
        raise TorchdiagError("the trace has no ProfilerStep# marks to select steps by; use --window")
    selected = marks[wanted]
    if not len(selected):
        raise TorchdiagError(
            f"steps {steps!r} selects nothing; the trace has {len(marks)} steps, 0 to {len(marks) - 1}"
        )
    return selected


def selected_window(trace: Trace, window: str) -> Window:
    """The window a person asked for. Raises TorchdiagError when it cannot be read or lies outside the trace."""
    first, last = extent(trace)
    start, end = selection.window_bounds(window, first, last)
    return Window(max(start, -REACH_NS), min(end, REACH_NS), "selection")


def extent(trace: Trace) -> tuple[int, int]:
    """Start of the first and end of the last complete event, of any category; (0, 0) in a trace without one."""
    times = (trace.dur_ns >= 0) & (trace.phase == COMPLETE) & (trace.ts_ns != MISSING)
    times[faulty(trace)] = False
    rows = np.flatnonzero(times)
    if not len(rows):
        return 0, 0
    start = trace.ts_ns[rows]
    return int(start.min()), int((start + trace.dur_ns[rows]).max())


def window_of(trace: Trace, marks: NDArray[np.int64], on_device: Activities) -> Window:
    """The window of a device: the steps that the marks tell, or its activity when there are none."""
    return marked_window(trace, marks, on_device) if len(marks) else active_window(on_device)


def marked_window(trace: Trace, marks: NDArray[np.int64], on_device: Activities) -> Window:
    """From the first mark to the end of the last work that a call before the last mark's end launched on the device."""
    start = trace.ts_ns[marks]
    first, last = int(start.min()), int((start + trace.dur_ns[marks]).max())
    linked = on_device.launch >= 0
    launched_before = trace.ts_ns[on_device.launch[linked]] < last
    end = int(on_device.end_ns[linked][launched_before].max(initial=last))
    return Window(first, end, "steps")


def active_window(on_device: Activities) -> Window:
    """From the first activity's start to the last one's end."""
    return Window(int(on_device.start_ns.min()), int(on_device.end_ns.max()), "activity")
