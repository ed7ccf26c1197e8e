"""The figures of a run of a suite, out of its result, its breakdown and its light recording."""

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from torchdiag.history.run_result import RunResult
from torchdiag.models.workload import ENVIRONMENT_MARK
from torchdiag.suite.outcome import Counters, DeviceTime, Figures, HostTime
from torchdiag.timeline import intervals
from torchdiag.timeline.marks import marks
from torchdiag.timeline.result import Breakdown
from torchdiag.trace.columns import NO_TEXT, Trace
from torchdiag.trace.vocabulary import Kind

_ATEN: Final = "aten::"


def figures(result: RunResult, breakdown: Breakdown | None, trace: Trace | None) -> Figures:
    """What was measured; `breakdown` and `trace` (the light recording) are None where none was recorded."""
    timed = result.find("timed")
    memory = result.memory
    environment = result.environment
    found = Figures(
        device_name=environment.gpus[0].name if environment.gpus else environment.cpu,
        torch=environment.torch,
        batch_size=result.batch_size,
        size=result.size,
        parameters=result.parameters,
        model_note=result.model_note,
        step_ns=timed.median_ns if timed is not None else None,
        samples_ns=timed.samples_ns if timed is not None else (),
        samples_per_s=result.samples_per_s,
        peak_rss_bytes=memory.peak_rss_bytes if memory is not None else None,
        gpu_peak_allocated_bytes=memory.gpu_peak_allocated_bytes if memory is not None else None,
        gpu_peak_reserved_bytes=memory.gpu_peak_reserved_bytes if memory is not None else None,
        device=None if breakdown is None else _device(breakdown),
        host=None if breakdown is None else _host(breakdown),
        counters=_counters(result, breakdown, trace),
        functions=result.functions,
    )
    if trace is None:
        return found
    steps = _steps(trace)
    return msgspec.structs.replace(
        found,
        steps_ns=int((steps[:, 1] - steps[:, 0]).sum()),
        environment_ns=_environment(trace, steps),
        operators=_operators(trace, steps),
    )


def _device(breakdown: Breakdown) -> DeviceTime | None:
    if not breakdown.devices:
        return None
    headlines = [device.headline for device in breakdown.devices]
    return DeviceTime(
        window_ns=sum(device.window.length_ns for device in breakdown.devices),
        active_ns=sum(headline.active for headline in headlines),
        transfer_ns=sum(headline.transfer for headline in headlines),
        python_ns=sum(headline.python_overhead for headline in headlines),
        idle_ns=sum(headline.idle for headline in headlines),
    )


def _host(breakdown: Breakdown) -> HostTime | None:
    host = breakdown.host
    if host is None:
        return None
    return HostTime(
        window_ns=host.window.length_ns,
        operator_ns=host.operator_ns,
        runtime_ns=host.runtime_ns,
        python_ns=host.python_ns,
        dataloader_ns=host.dataloader_ns,
        uncovered_ns=host.uncovered_ns,
    )


def _counters(result: RunResult, breakdown: Breakdown | None, trace: Trace | None) -> Counters:
    recorder = result.recorder
    steps = breakdown.steps if breakdown is not None and breakdown.steps_source == "marks" else ()
    return Counters(
        kernels=tuple(step.kernels for step in steps),
        launches=tuple(step.launches for step in steps),
        copies=tuple(step.copies for step in steps),
        copied_bytes=tuple(step.copied_bytes for step in steps),
        syncs=tuple(step.syncs for step in steps),
        operators=() if trace is None else _operators_per_step(trace, _steps(trace)),
        exceptions=() if recorder is None else recorder.exceptions_per_step,
        throws=() if recorder is None else recorder.throws_per_step,
    )


def _steps(trace: Trace) -> NDArray[np.int64]:
    """int64[n, 2]: start and end of each step in nanoseconds, in order of time."""
    rows = marks(trace)
    return np.stack([trace.ts_ns[rows], trace.ts_ns[rows] + trace.dur_ns[rows]], axis=1).reshape(-1, 2)


def _step_of(steps: NDArray[np.int64], instants: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[len(instants)]: the step each instant lies in, -1 for none."""
    return intervals.inside(steps[:, 0], steps[:, 1], instants)


def _operator_rows(trace: Trace) -> NDArray[np.int64]:
    return np.flatnonzero(trace.kind == Kind.OPERATOR)


def _operators_per_step(trace: Trace, steps: NDArray[np.int64]) -> tuple[int, ...]:
    step = _step_of(steps, trace.ts_ns[_operator_rows(trace)])
    return tuple(int(count) for count in np.bincount(step[step >= 0], minlength=len(steps)))


def _operators(trace: Trace, steps: NDArray[np.int64]) -> dict[str, int]:
    """How often each ATen operator was called, inner calls included, in the steps (in all, where none is marked)."""
    rows = _operator_rows(trace)
    rows = rows[trace.name[rows] != NO_TEXT]
    if len(steps):
        rows = rows[_step_of(steps, trace.ts_ns[rows]) >= 0]
    counts = np.bincount(trace.name[rows], minlength=len(trace.names))
    named = ((trace.names[code], int(counts[code])) for code in np.flatnonzero(counts).tolist())
    return dict(sorted((name, count) for name, count in named if name.startswith(_ATEN)))


def _environment(trace: Trace, steps: NDArray[np.int64]) -> int | None:
    """Nanoseconds of the steps in which the environment ran; None where the model has none."""
    # The last is for NO_TEXT, which is -1.
    named = np.append(trace.names.codes_where(lambda name: name == ENVIRONMENT_MARK), False)
    rows = np.flatnonzero((trace.kind == Kind.ANNOTATION) & named[trace.name])
    if not len(rows) or not len(steps):
        return None
    start, end = trace.ts_ns[rows], trace.ts_ns[rows] + trace.dur_ns[rows]
    within = _step_of(steps, start)
    start, end = start[within >= 0], np.minimum(end[within >= 0], steps[within[within >= 0], 1])
    order = np.argsort(start, kind="stable")
    return intervals.length(*intervals.union(start[order], end[order]))
