"""Steps with every recorder on and no profiler: what the profiler cannot see, counted."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from torchdiag.capture import trace_file
from torchdiag.capture.beside import CHEAP_EXCEPTIONS, Beside
from torchdiag.capture.clock import ClockMap, microseconds
from torchdiag.capture.passes import Stage
from torchdiag.capture.timing import StepTimer
from torchdiag.capture.tracks import CATEGORY, Event
from torchdiag.history.run_result import TRACE, PassResult

_STEPS: Final = 3
# Tracks of `tracks` begin at one number in every call; these come beside those of the light pass.
_TRACK_SHIFT: Final = 1000
_STEPS_TRACK: Final = 1_900_000_999 + _TRACK_SHIFT


class Exceptions:
    """Python exceptions, C++ exceptions, collections and warnings, for `steps` steps (3 if None)."""

    def __init__(self, steps: int | None = None) -> None:
        self._steps = steps or _STEPS

    def begin(self, stage: Stage) -> None:
        """See `Pass`."""
        self._stage = stage
        self._wall_ns = time.time_ns()
        self._beside = Beside(exceptions=True)
        self._timer = StepTimer(stage.device)
        self._timer.start()
        self._beside.start()
        self._timer.resume()

    def border(self) -> bool:
        """See `Pass`."""
        self._timer.lap()
        self._beside.step()
        if len(self._timer.step_ns) >= self._steps:
            self._beside.stop()
            return True
        self._timer.resume()
        return False

    def end(self, *, early: bool) -> None:
        """See `Pass`."""
        self._beside.stop()
        if not self._timer.step_ns:
            return
        device_step_ns = self._timer.device_step_ns()
        done = PassResult(
            name="exceptions",
            step_ns=tuple(self._timer.step_ns),
            device_step_ns=None if device_step_ns is None else tuple(device_step_ns),
            started_ns=self._wall_ns,
            note="the target ended before all steps were recorded" if early else "",
        )
        trace = self._stage.hand_over.folder / TRACE
        if not CHEAP_EXCEPTIONS and self._beside.has_exceptions and trace.is_file():
            # Where they are too dear to be recorded in the light pass, they stand in its trace after it.
            self._extend(trace)
        self._stage.hand_over.add_pass(done, recorder=self._beside.result())

    def _extend(self, trace: Path) -> None:
        def events(base_ns: int) -> Sequence[Event]:
            pid = os.getpid()
            added = [_shifted(event) for event in self._beside.exception_events(pid, base_ns)]
            return [*added, *_step_events(self._beside.steps, self._beside.clock, pid, base_ns)]

        trace_file.extend(trace, events)


def _shifted(event: Event) -> Event:
    if "tid" not in event:
        return event
    return {**event, "tid": event["tid"] + _TRACK_SHIFT}


def _step_events(steps: Sequence[tuple[int, int]], clock: ClockMap, pid: int, base_ns: int) -> list[Event]:
    """The pass's own steps, which the profiler has not marked."""
    name: dict[str, Any] = {"name": "steps of the exceptions pass"}
    events: list[Event] = [{"ph": "M", "name": "thread_name", "pid": pid, "tid": _STEPS_TRACK, "args": name}]
    for index, (start, end) in enumerate(steps):
        at = clock.to_trace_ns(start, base_ns)
        events.append(
            {
                "ph": "X",
                "cat": CATEGORY,
                "name": f"exceptions pass, step {index}",
                "pid": pid,
                "tid": _STEPS_TRACK,
                "ts": microseconds(at),
                "dur": microseconds(clock.to_trace_ns(end, base_ns) - at),
                "args": {},
            }
        )
    return events
