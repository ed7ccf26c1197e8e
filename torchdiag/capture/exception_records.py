"""What an exception recording says, as plain values."""

from dataclasses import dataclass
from enum import StrEnum

from torchdiag.capture.clock import ClockMap


class Outcome(StrEnum):
    """What became of an exception."""

    HANDLED = "handled"
    """A handler of a Python frame took it: an `except`, a `with` that suppressed it, a `finally` that returned."""
    LEFT_TO_C = "left-to-c"
    """It left a Python frame for C code which never passed it on: `hasattr`, `getattr` with a default, the sequence
    protocol of `for`, a destructor, C++ code that caught it. `handled_at` is then the Python line that called that C
    code, and the time ends where the exception left the frame."""
    UNHANDLED = "unhandled"
    """It left the recorded region or the outermost frame of its thread."""
    IN_FLIGHT = "in-flight"
    """It was still travelling when the recording ended."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place in Python source: file as the code object names it, 1-based line (0 where unknown), qualified name."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.function}"


@dataclass(frozen=True, slots=True)
class ExceptionSite:
    """Exceptions of one type that were raised at one place and ended at one place.

    `count` exceptions; `total_ns`, `min_ns`, `max_ns` are nanoseconds from raise to handler, over all of them.
    `handled_at` is None where nothing handled them.
    """

    type: str
    raised_at: Site
    handled_at: Site | None
    outcome: Outcome
    count: int
    total_ns: int
    min_ns: int
    max_ns: int


@dataclass(frozen=True, slots=True)
class StepExceptions:
    """The exceptions raised during one step, by place, most time first.

    `untracked` counts exceptions of this step whose places were beyond the recorder's limit; they are in no site.
    Times are of the recorder's monotonic clock, ns.
    """

    index: int
    start_ns: int
    end_ns: int
    sites: tuple[ExceptionSite, ...]
    untracked: int

    @property
    def count(self) -> int:
        """All exceptions raised in the step."""
        return sum(site.count for site in self.sites) + self.untracked

    @property
    def total_ns(self) -> int:
        """Nanoseconds from raise to handler, summed over the tracked ones (overlapping ones count twice)."""
        return sum(site.total_ns for site in self.sites)


@dataclass(frozen=True, slots=True)
class ExceptionSlice:
    """One exception: from raise to handler, monotonic clock ns; `thread_id` is the operating system's."""

    start_ns: int
    end_ns: int
    thread_id: int
    step: int
    type: str
    raised_at: Site
    handled_at: Site | None
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class RecorderCost:
    """What recording itself costs, measured in this process.

    `exception_ns`: added to each exception raised and handled in one frame; each further frame adds about as much.
    `call_ns`: added to each call of a Python function, exceptions or not (0 with `sys.monitoring`).
    """

    exception_ns: float
    call_ns: float


@dataclass(frozen=True, slots=True)
class ExceptionSummary:
    """A finished (or running) recording.

    `steps` has one entry for each `step()`, and one more for what came after the last `step()` when exceptions did.
    `sites` are the totals over all steps, most time first. `slices` are the first exceptions one by one, in order of
    their start; `dropped_slices` counts those that came after the limit (they are in the totals all the same).
    `untracked` counts exceptions at places beyond the limit of distinct places. `interrupted` says that another tracer
    replaced the recorder's on the way, so that the counts are too low.
    """

    mechanism: str
    steps: tuple[StepExceptions, ...]
    sites: tuple[ExceptionSite, ...]
    slices: tuple[ExceptionSlice, ...]
    dropped_slices: int
    untracked: int
    interrupted: bool
    cost: RecorderCost
    clock: ClockMap

    @property
    def count(self) -> int:
        """All exceptions of the recording."""
        return sum(site.count for site in self.sites) + self.untracked
