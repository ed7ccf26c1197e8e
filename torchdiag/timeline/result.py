"""What a breakdown says: small frozen values, no analysis and no printing."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Literal

from torchdiag.trace.quality import Quality


class Cause(StrEnum):
    """Why a device was idle, in the order of the machine-readable form."""

    PYTHON = "python"
    FRAMEWORK = "framework"
    LAUNCH = "launch"
    LAUNCH_LATENCY = "launch_latency"
    COPY_CALL = "copy_call"
    SYNC = "sync"
    ALLOCATION = "allocation"
    RUNTIME = "runtime"
    DATALOADER = "dataloader"
    PROFILER = "profiler"
    QUEUED = "queued"
    UNATTRIBUTED = "unattributed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class States:
    """Nanoseconds a device spent in each state; they sum to its window."""

    compute: int
    communication: int
    memory: int
    transfer: int
    idle: int


@dataclass(frozen=True, slots=True)
class Headline:
    """The four figures of nanoseconds that sum to the window."""

    active: int
    transfer: int
    python_overhead: int
    idle: int


@dataclass(frozen=True, slots=True)
class Window:
    """The time a breakdown covers, in the trace's own clock."""

    start_ns: int
    end_ns: int
    source: Literal["steps", "activity", "selection"]

    @property
    def length_ns(self) -> int:
        """End minus start."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Place:
    """Where idle time of one cause comes from.

    `label` is what a person reads (`train.py:88 step`, `aten::item`); the other fields are what it is made of, None
    where the trace does not tell. `event` is one row of the trace where it happened.
    """

    label: str
    file: str | None
    line: int | None
    function: str | None
    operator: str | None
    idle_ns: int
    count: int
    event: int | None


@dataclass(frozen=True, slots=True)
class IdleCause:
    """Idle time of one cause: nanoseconds, number of separate stretches, and its top places, longest first."""

    cause: Cause
    idle_ns: int
    count: int
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class DeviceBreakdown:
    """Where the time of one device went. `causes` holds every `Cause` once, in the order of the enumeration."""

    id: int
    name: str
    kind: str
    window: Window
    states: States
    causes: tuple[IdleCause, ...]

    @property
    def headline(self) -> Headline:
        """Active, transfer, Python overhead and idle."""
        python_ns = next(cause.idle_ns for cause in self.causes if cause.cause is Cause.PYTHON)
        states = self.states
        return Headline(
            states.compute + states.communication + states.memory,
            states.transfer,
            python_ns,
            states.idle - python_ns,
        )


@dataclass(frozen=True, slots=True)
class HostBreakdown:
    """Where the driver thread's time went when no device activity was recorded. The first five sum to the window."""

    window: Window
    thread: str
    operator_ns: int
    runtime_ns: int
    python_ns: int
    dataloader_ns: int
    uncovered_ns: int
    cpu_active_ns: int
    """Union of operators over all threads."""
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `gpu_busy` is a share (0..1) of the step's time, a mean over the devices; None without a device.

    `group` names the steps that look alike (`a`, `b`, ...); `note` says what sets this one apart ("first", "4 more
    copies than the others"), empty for a usual step.
    """

    name: str
    start_ns: int
    end_ns: int
    gpu_busy: float | None
    kernels: int
    launches: int
    syncs: int
    copies: int
    copied_bytes: int
    group: str = "a"
    note: str = ""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """What was read."""

    path: str
    events: int
    ranks: tuple[int, ...]
    torch: str | None
    quality: tuple[Quality, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded beside the profiler, of one name and place; it is no part of the time of device or host.

    `name` is the type of an exception, the category of a warning, or `generation 2`. `place` is where it was raised or
    issued (`file:line:function`; for C++ the function or library), `handled_at` where an exception ended; `operator`
    names the PyTorch operators that threw it. Each is empty where unknown. `count` and `total_ns` (from raise to
    handler; of a collection, its length) are over `steps` steps, 0 where it is not known how many these were.
    """

    kind: Literal["exception", "throw", "collection", "warning"]
    name: str
    place: str
    handled_at: str
    operator: str
    count: int
    total_ns: int
    steps: int


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Where every nanosecond of device time went.

    `steps_source` is "marks" (`ProfilerStep#`), "period" (found in the kernel sequence) or "none". `host` is set when
    no device activity was recorded. `recorded` is what torchdiag recorded beside the profiler, by kind, longest first.
    """

    trace: TraceSummary
    steps: tuple[Step, ...]
    steps_source: Literal["marks", "period", "none"]
    devices: tuple[DeviceBreakdown, ...]
    host: HostBreakdown | None
    recorded: tuple[Recorded, ...] = ()


STATE_NAMES = tuple(field.name for field in fields(States))
