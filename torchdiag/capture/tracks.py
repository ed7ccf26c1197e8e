"""What was recorded beside the profiler, as events of its Chrome trace: category `torchdiag`, tracks of their own.

Every kind gets its slices on tracks named after the thread they happened in, below the program's own tracks, and a
counter with its number per step. Times are in the trace's clock (`clock`), exact to the nanosecond.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from torchdiag.capture.clock import ClockMap, microseconds
from torchdiag.capture.exception_records import ExceptionSlice, ExceptionSummary
from torchdiag.capture.gc_recorder import Collection, GcSummary
from torchdiag.capture.lanes import lanes
from torchdiag.capture.throw_probe import CppThrow
from torchdiag.capture.throw_recorder import ThrowSummary
from torchdiag.capture.warnings_recorder import WarningsSummary

CATEGORY: Final = "torchdiag"

# Far above the numbers of threads (at most 2**22 on Linux) and below 2**31.
_FIRST_TRACK: Final = 1_900_000_000
_SORT_INDEX: Final = 1_000_000

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Slice:
    start_ns: int
    end_ns: int
    thread_id: int
    name: str
    arguments: dict[str, Any]


class _Writer:
    def __init__(self, clock: ClockMap, base_ns: int, pid: int) -> None:
        self._clock = clock
        self._base_ns = base_ns
        self._pid = pid
        self._tracks = 0
        self.events: list[Event] = []

    def _at(self, ns: int) -> int:
        return self._clock.to_trace_ns(ns, self._base_ns)

    def slices(self, kind: str, slices: Iterable[_Slice]) -> None:
        """One track for each thread, and more where slices of a thread cross."""
        by_thread: dict[int, list[_Slice]] = {}
        for item in slices:
            by_thread.setdefault(item.thread_id, []).append(item)
        for thread_id, items in sorted(by_thread.items()):
            # In the trace's clock, so that what nests here nests there, to the last digit.
            spans = [(self._at(item.start_ns), self._at(item.end_ns)) for item in items]
            lane_of = lanes(spans)
            for lane in range(max(lane_of) + 1):
                track = self._track(f"{kind}, thread {thread_id}" + (f" ({lane + 1})" if lane else ""))
                for item, (start, end), at in zip(items, spans, lane_of, strict=True):
                    if at == lane:
                        self.events.append(
                            {
                                "ph": "X",
                                "cat": CATEGORY,
                                "name": item.name,
                                "pid": self._pid,
                                "tid": track,
                                "ts": microseconds(start),
                                "dur": microseconds(end - start),
                                "args": item.arguments,
                            }
                        )

    def counter(self, name: str, steps: Sequence[tuple[int, int, int]]) -> None:
        """A counter that stands at the step's count (start, end, count) during each step, and at 0 after the last."""
        for start, _, count in steps:
            self._count(name, start, count)
        if steps:
            self._count(name, steps[-1][1], 0)

    def _count(self, name: str, at: int, count: int) -> None:
        self.events.append(
            {
                "ph": "C",
                "cat": CATEGORY,
                "name": name,
                "pid": self._pid,
                "ts": microseconds(self._at(at)),
                "args": {"count": count},
            }
        )

    def _track(self, name: str) -> int:
        number = _FIRST_TRACK + self._tracks
        for key, arguments in (
            ("thread_name", {"name": name}),
            ("thread_sort_index", {"sort_index": _SORT_INDEX + self._tracks}),
        ):
            self.events.append({"ph": "M", "name": key, "pid": self._pid, "tid": number, "args": arguments})
        self._tracks += 1
        return number


def to_trace_events(
    *,
    pid: int,
    base_ns: int,
    clock: ClockMap,
    exceptions: ExceptionSummary | None = None,
    throws: ThrowSummary | None = None,
    collections: GcSummary | None = None,
    warnings: WarningsSummary | None = None,
) -> list[Event]:
    """Chrome trace events of what was recorded, to be appended to the `traceEvents` of process `pid`.

    `base_ns` is the trace's `baseTimeNanoseconds` (0 if it has none), `clock` the map of any of the summaries. `ts` and
    `dur` are microseconds as `clock.microseconds` gives them.
    """
    writer = _Writer(clock, base_ns, pid)
    if exceptions is not None:
        writer.slices("Python exceptions", map(_of_exception, exceptions.slices))
        writer.counter(
            "Python exceptions per step", [(step.start_ns, step.end_ns, step.count) for step in exceptions.steps]
        )
    if throws is not None:
        writer.slices("C++ exceptions", map(_of_throw, throws.throws))
        writer.counter("C++ exceptions per step", [(step.start_ns, step.end_ns, step.count) for step in throws.steps])
    if collections is not None:
        writer.slices("Garbage collection", map(_of_collection, collections.slices))
        writer.counter(
            "Garbage collections per step", [(step.start_ns, step.end_ns, step.count) for step in collections.steps]
        )
    if warnings is not None:
        writer.counter("Warnings per step", [(step.start_ns, step.end_ns, step.count) for step in warnings.steps])
    return writer.events


def _of_exception(item: ExceptionSlice) -> _Slice:
    arguments = {
        "raised at": str(item.raised_at),
        "handled at": "" if item.handled_at is None else str(item.handled_at),
        "outcome": item.outcome.value,
        "step": item.step,
    }
    return _Slice(item.start_ns, item.end_ns, item.thread_id, item.type, arguments)


def _of_throw(item: CppThrow) -> _Slice:
    arguments = {
        "thrown in": item.symbol,
        "library": item.library,
        "library offset": hex(item.library_offset),
        "caught": item.caught_ns is not None,
    }
    end = item.time_ns if item.caught_ns is None else item.caught_ns
    return _Slice(item.time_ns, end, item.thread_id, item.type, arguments)


def _of_collection(item: Collection) -> _Slice:
    arguments = {
        "generation": item.generation,
        "collected": item.collected,
        "uncollectable": item.uncollectable,
        "step": item.step,
    }
    return _Slice(item.start_ns, item.end_ns, item.thread_id, f"Python GC generation {item.generation}", arguments)
