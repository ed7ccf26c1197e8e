"""Records Python's garbage collections: when, which generation, how long, what they freed.

Through `gc.callbacks`, so it sees the collections of the cyclic collector, automatic and by `gc.collect()`, in
whichever thread they run (which holds the interpreter meanwhile, so every other Python thread waits too). Objects freed
by their reference count are no collection.
"""

import gc
from _thread import get_native_id
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from torchdiag.capture.clock import ClockMap, now_ns, read_pair
from torchdiag.capture.step_marks import StepMarks


@dataclass(frozen=True, slots=True)
class Collection:
    """One collection: monotonic clock ns, the operating system's thread id, the interpreter's own counts."""

    start_ns: int
    end_ns: int
    thread_id: int
    step: int
    generation: int
    collected: int
    uncollectable: int


@dataclass(frozen=True, slots=True)
class GenerationSum:
    """All collections of one generation: how many, their nanoseconds, the objects they freed or could not free."""

    generation: int
    count: int
    total_ns: int
    longest_ns: int
    collected: int
    uncollectable: int


@dataclass(frozen=True, slots=True)
class StepCollections:
    """The collections that began in one step, by generation. Monotonic clock ns."""

    index: int
    start_ns: int
    end_ns: int
    generations: tuple[GenerationSum, ...]

    @property
    def count(self) -> int:
        """All collections of the step."""
        return sum(generation.count for generation in self.generations)

    @property
    def total_ns(self) -> int:
        """Their nanoseconds; collections never overlap."""
        return sum(generation.total_ns for generation in self.generations)


@dataclass(frozen=True, slots=True)
class GcSummary:
    """A finished recording. `slices` are the first collections one by one; `dropped_slices` came after the limit."""

    steps: tuple[StepCollections, ...]
    generations: tuple[GenerationSum, ...]
    slices: tuple[Collection, ...]
    dropped_slices: int
    clock: ClockMap


class GcRecorder:
    """Records the collections inside its `with` block. At most `max_slices` of them are kept one by one."""

    def __init__(self, *, max_slices: int = 20_000) -> None:
        self._max_slices = max_slices
        self._marks = StepMarks()
        self._began_ns: int | None = None
        self._sums: dict[tuple[int, int], list[int]] = {}
        self._slices: list[tuple[int, ...]] = []
        self._dropped = 0
        self._stopped_ns: int | None = None
        self._first = self._last = read_pair()

    def __enter__(self) -> Self:
        self._first = read_pair()
        self._marks = StepMarks()
        # The stop before and the start after all other callbacks, so that their time is not taken for the collector's.
        gc.callbacks.insert(0, self._ends)
        gc.callbacks.append(self._begins)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        gc.callbacks.remove(self._begins)
        gc.callbacks.remove(self._ends)
        self._stopped_ns = now_ns()
        self._last = read_pair()

    def step(self) -> None:
        """The step in progress is over, the next one begins."""
        self._marks.step()

    def _begins(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began_ns = now_ns()

    def _ends(self, phase: str, info: dict[str, int]) -> None:
        now = now_ns()
        began, self._began_ns = self._began_ns, None
        if phase != "stop" or began is None:
            return
        step, generation = self._marks.index, info["generation"]
        collected, uncollectable = info["collected"], info["uncollectable"]
        sums = self._sums.setdefault((step, generation), [0, 0, 0, 0, 0])
        took = now - began
        sums[:] = sums[0] + 1, sums[1] + took, max(sums[2], took), sums[3] + collected, sums[4] + uncollectable
        if len(self._slices) < self._max_slices:
            self._slices.append((began, now, get_native_id(), step, generation, collected, uncollectable))
        else:
            self._dropped += 1

    def summary(self) -> GcSummary:
        """What was recorded. Raises `RuntimeError` while still recording."""
        stopped = self._stopped_ns
        if stopped is None:
            raise RuntimeError("The summary is there once the recording has been stopped.")
        recorded = {step for step, _ in self._sums}
        return GcSummary(
            steps=tuple(
                StepCollections(index, *self._marks.bounds(index, stopped), self._generations(index))
                for index in self._marks.listed(self._marks.index in recorded)
            ),
            generations=self._generations(None),
            slices=tuple(Collection(*numbers) for numbers in self._slices),
            dropped_slices=self._dropped,
            clock=ClockMap(self._first, self._last),
        )

    def _generations(self, step: int | None) -> tuple[GenerationSum, ...]:
        found: dict[int, list[int]] = {}
        for (at, generation), sums in self._sums.items():
            if step is None or at == step:
                known = found.setdefault(generation, [0, 0, 0, 0, 0])
                longest = max(known[2], sums[2])
                known[:] = [a + b for a, b in zip(known, sums, strict=True)]
                known[2] = longest
        return tuple(GenerationSum(generation, *found[generation]) for generation in sorted(found))
