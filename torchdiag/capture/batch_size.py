"""The batch size at which a model's throughput stops rising, found by trying.

Powers of two from 1 on, each in a process of its own so that one that runs out of memory leaves nothing behind. The
smallest batch within 1 % of the best throughput is chosen: larger ones only cost memory and waiting.
"""

from collections.abc import Callable, Sequence
from typing import Final

from torchdiag.history.run_result import Failure, FailureKind, RunResult, TunePoint, TuneResult

STEPS: Final = 10
"""Timed steps at each batch size, or fewer where fewer were asked for."""

WARMUP: Final = 3
"""Steps left out before those, unless told otherwise."""

_LARGEST: Final = 1 << 16
_RISE: Final = 1.01
_WITHIN: Final = 0.99
_PATIENCE: Final = 2
_LONGEST_STEP_NS: Final = 30_000_000_000
_TOO_LARGE: Final[tuple[FailureKind, ...]] = ("out-of-memory", "killed")


def tune(measure: Callable[[int], RunResult], *, on_event: Callable[[str], None]) -> TuneResult:
    """Try batch sizes. `measure` runs warm-up and timed pass at one; nothing it returns is raised.

    Stops when two doublings in a row have not raised the best throughput by 1 %, when memory runs out, when a step
    takes over 30 seconds, or at 65536. `chosen` is None if not even a batch of one could be measured, or the user
    interrupted.
    """
    points: list[TunePoint] = []
    size = 1
    while True:
        result = measure(size)
        point = _point(size, result)
        points.append(point)
        on_event(_words(point))
        reason = stop_reason(points)
        if point.samples_per_s is not None and result.batch_size != size:
            reason = f"the model sets its batch size itself, to {result.batch_size}"
        if reason:
            interrupted = point.failure is not None and point.failure.kind == "interrupted"
            return TuneResult(
                points=tuple(points), chosen=None if interrupted else choose(points), stopped_because=reason
            )
        size *= 2


def _point(size: int, result: RunResult) -> TunePoint:
    timed = result.find("timed")
    complete = result.failure is None and timed is not None
    return TunePoint(
        batch_size=size,
        step_ns=timed.median_ns if complete and timed is not None else None,
        samples_per_s=result.samples_per_s if complete else None,
        gpu_peak_allocated_bytes=result.memory.gpu_peak_allocated_bytes if result.memory is not None else None,
        failure=result.failure
        if result.failure is not None or complete
        else Failure(kind="no-steps", message="No step was timed."),
    )


def stop_reason(points: Sequence[TunePoint]) -> str:
    """Why no larger batch is tried; empty if one is to be."""
    last = points[-1]
    if last.failure is not None:
        if last.failure.kind in _TOO_LARGE and len(points) > 1:
            return f"a batch of {last.batch_size} does not fit into memory"
        return f"a batch of {last.batch_size} could not be measured: {last.failure.message}"
    if last.step_ns is not None and last.step_ns > _LONGEST_STEP_NS:
        return f"a step at batch size {last.batch_size} takes {last.step_ns / 1e9:.0f} s"
    if last.batch_size >= _LARGEST:
        return f"{_LARGEST} is the largest batch size tried"
    throughputs = [point.samples_per_s or 0.0 for point in points]
    earlier, recent = throughputs[:-_PATIENCE], throughputs[-_PATIENCE:]
    if earlier and max(recent) < _RISE * max(earlier):
        return "throughput rises no more"
    return ""


def choose(points: Sequence[TunePoint]) -> int | None:
    """The smallest batch whose throughput is within 1 % of the best; None if none was measured."""
    measured = [(point.batch_size, point.samples_per_s) for point in points if point.samples_per_s]
    if not measured:
        return None
    best = max(throughput for _, throughput in measured)
    return min(size for size, throughput in measured if throughput >= _WITHIN * best)


def _words(point: TunePoint) -> str:
    if point.samples_per_s is None or point.step_ns is None:
        kind = point.failure.kind if point.failure is not None else "not measured"
        return f"batch {point.batch_size}: {kind}"
    return f"batch {point.batch_size}: {point.samples_per_s:.4g} samples/s, {point.step_ns / 1e6:.4g} ms a step"
