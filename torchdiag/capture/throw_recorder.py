"""C++ exceptions by step, for the process that the throw probe was preloaded into."""

from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from torchdiag.capture import throw_probe
from torchdiag.capture.clock import ClockMap, now_ns, read_pair
from torchdiag.capture.step_marks import StepMarks
from torchdiag.capture.throw_probe import CppThrow, ThrowEvent


@dataclass(frozen=True, slots=True)
class ThrowSite:
    """C++ exceptions of one type thrown in one function of one library.

    `total_ns` is from throw to first catch, summed over the `caught` ones of them.
    """

    type: str
    library: str
    symbol: str
    count: int
    caught: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class StepThrows:
    """The C++ exceptions thrown during one step, most frequent place first. Times are monotonic clock ns."""

    index: int
    start_ns: int
    end_ns: int
    sites: tuple[ThrowSite, ...]

    @property
    def count(self) -> int:
        """All recorded exceptions of the step."""
        return sum(site.count for site in self.sites)


@dataclass(frozen=True, slots=True)
class ThrowSummary:
    """A finished recording. `thrown` exceptions in all; `dropped` of them are in no step and no record."""

    steps: tuple[StepThrows, ...]
    sites: tuple[ThrowSite, ...]
    throws: tuple[CppThrow, ...]
    thrown: int
    dropped: int
    clock: ClockMap


class ThrowRecorder:
    """Records the C++ exceptions of every thread inside its `with` block, at most `max_throws` of them one by one.

    Raises `TorchdiagError` on entry if the probe was not preloaded into this process.
    """

    def __init__(self, *, max_throws: int = 100_000) -> None:
        self._max_throws = max_throws
        self._marks = StepMarks()
        self._events: list[ThrowEvent] = []
        self._beyond = 0
        self._began = (0, 0)
        self._ended = (0, 0)
        self._stopped_ns: int | None = None
        self._first = self._last = read_pair()

    def __enter__(self) -> Self:
        throw_probe.drain_events()
        self._began = throw_probe.counts()
        self._first = read_pair()
        self._marks = StepMarks()
        throw_probe.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        throw_probe.stop()
        self._stopped_ns = now_ns()
        self._last = read_pair()
        self._collect()
        self._ended = throw_probe.counts()

    def step(self) -> None:
        """The step in progress is over, the next one begins."""
        self._marks.step()
        self._collect()

    def _collect(self) -> None:
        for event in throw_probe.drain_events():
            # A catch adds nothing without its throw, but comes after it: the limit cuts at the end.
            if len(self._events) < 2 * self._max_throws:
                self._events.append(event)
            elif event.kind == 0:
                self._beyond += 1

    def summary(self) -> ThrowSummary:
        """What was recorded. Raises `RuntimeError` while still recording."""
        stopped = self._stopped_ns
        if stopped is None:
            raise RuntimeError("The summary is there once the recording has been stopped.")
        throws = throw_probe.described(self._events)
        last_start, _ = self._marks.bounds(self._marks.index, stopped)
        has_rest = any(throw.time_ns >= last_start for throw in throws)
        steps: list[StepThrows] = []
        for index in self._marks.listed(has_rest):
            start, end = self._marks.bounds(index, stopped + 1)
            sites = _sites([throw for throw in throws if start <= throw.time_ns < end])
            steps.append(StepThrows(index, start, min(end, stopped), sites))
        return ThrowSummary(
            steps=tuple(steps),
            sites=_sites(throws),
            throws=throws,
            thrown=self._ended[0] - self._began[0],
            dropped=self._ended[1] - self._began[1] + self._beyond,
            clock=ClockMap(self._first, self._last),
        )


def _sites(throws: "tuple[CppThrow, ...] | list[CppThrow]") -> tuple[ThrowSite, ...]:
    counts = Counter[tuple[str, str, str]]()
    caught = Counter[tuple[str, str, str]]()
    total = Counter[tuple[str, str, str]]()
    for throw in throws:
        place = (throw.type, throw.library, throw.symbol)
        counts[place] += 1
        if throw.caught_ns is not None:
            caught[place] += 1
            total[place] += throw.caught_ns - throw.time_ns
    ordered = sorted(counts, key=lambda place: (-counts[place], place))
    return tuple(ThrowSite(*place, counts[place], caught[place], total[place]) for place in ordered)
