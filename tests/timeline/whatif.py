"""What tests of the replay share: traces in microseconds, and the step times of a what-if in microseconds."""

import numpy as np
import written
from hand import trace
from written import Event

from torchdiag.timeline import steps as step_tables
from torchdiag.timeline.changes import Change
from torchdiag.timeline.partition import partition
from torchdiag.timeline.replay import Replay
from torchdiag.trace.columns import Trace

US = 1000


def launch(start: float, length: float, number: int, name: str = "cudaLaunchKernel", thread: int = 1) -> Event:
    return written.call(int(start * US), int(length * US), number, name=name, thread=thread)


def kernel(start: float, length: float, number: int, stream: int = 7, device: int = 0, name: str = "gemm") -> Event:
    return written.kernel(int(start * US), int(length * US), number, stream=stream, device=device, name=name)


def copy(start: float, length: float, number: int, kind: str = "HtoD", stream: int = 7) -> Event:
    return written.copy(int(start * US), int(length * US), number, kind=kind, stream=stream)


def sync(start: float, end: float, name: str = "cudaStreamSynchronize", thread: int = 1) -> Event:
    return written.call(int(start * US), int((end - start) * US), name=name, thread=thread)


def op(start: float, end: float, name: str = "aten::mm", thread: int = 1) -> Event:
    return written.operator(int(start * US), int((end - start) * US), name, thread=thread)


def frame(start: float, end: float, name: str = "train.py(88): step", thread: int = 1) -> Event:
    return written.frame(int(start * US), int((end - start) * US), name, thread=thread)


def mark(number: int, start: float, end: float) -> Event:
    return written.mark(number, int(start * US), int((end - start) * US))


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def replay_of(found: Trace) -> Replay:
    parts = partition(found)
    table, _ = step_tables.steps(found, parts.activities, parts.selected)
    return Replay.of(found, parts, table)


class WhatIf:
    """A trace of events; a row is the place of its event, `all(name)` are the rows of a name."""

    def __init__(self, *events: Event) -> None:
        self.trace = trace(*events)
        self.replay = replay_of(self.trace)
        assert self.replay.steps_ns([]).tolist() == self.replay.steps_measured_ns.tolist()

    def all(self, name: str) -> np.ndarray:
        return np.flatnonzero([self.trace.names[code].startswith(name) for code in self.trace.name.tolist()])

    def steps(self, *changes: Change) -> list[float]:
        return (self.replay.steps_ns(changes) / US).tolist()

    def paces(self, *changes: Change) -> list[float]:
        return (self.replay.paces_ns(changes) / US).tolist()

    def idle(self, *changes: Change) -> list[float]:
        return (self.replay.device_idle_ns(changes) / US).tolist()
