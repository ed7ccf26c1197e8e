"""What a simulated machine did, as a trace in the form that torch 2's profiler exports."""

import json
from dataclasses import dataclass
from typing import Any

from simulator.simulated_machine import Machine, Span, Work

BASE_NS = 864_000_123_456_789
"""The machine's zero on the trace's clock."""
AUTOGRAD_THREAD = 4_390
DEVICE = {
    "id": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 85_018_279_936,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65_536,
    "warpSize": 32,
    "sharedMemPerBlock": 49_152,
    "numSms": 132,
    "regsPerMultiprocessor": 65_536,
    "sharedMemPerBlockOptin": 232_448,
    "sharedMemPerMultiprocessor": 233_472,
}
ORDER = ("user_annotation", "cpu_op", "python_function", "overhead", "cuda_runtime")

Event = dict[str, Any]


@dataclass(frozen=True)
class Flow:
    """A forward operator and the backward operator it asked for."""

    number: int
    forward: Span
    backward: Span


@dataclass(frozen=True)
class Recording:
    """What the profiler was told to record."""

    with_stack: bool = True
    record_shapes: bool = True


def micros(ns: int) -> float:
    """The time in the trace. A double has room for these microseconds to the nanosecond."""
    return (BASE_NS + ns) / 1_000


def trace_of(machine: Machine, flows: list[Flow], recording: Recording, *, end_ns: int) -> dict[str, Any]:
    """The whole document; every event is of the process `machine.pid` or of device 0."""
    spans = [span for span in machine.spans if recording.with_stack or span.kind != "python_function"]
    spans.sort(key=lambda span: (ORDER.index(span.kind), span.start_ns, -span.end_ns))
    events = [_host(machine, span, number, recording) for number, span in enumerate(spans)]
    for flow in flows:
        events.append(_flow("s", "fwdbwd", flow.number, (machine.pid, flow.forward.thread), flow.forward.start_ns))
        events.append(_flow("f", "fwdbwd", flow.number, (machine.pid, flow.backward.thread), flow.backward.start_ns))
    linked: set[int] = set()
    for work in machine.works:
        number = work.call.args["correlation"]
        events.append(_device(work))
        if number not in linked:
            linked.add(number)
            events.append(_flow("s", "ac2g", number, (machine.pid, work.call.thread), work.call.start_ns))
        events.append(_flow("f", "ac2g", number, (0, work.stream), work.start_ns))
    return {
        "schemaVersion": 1,
        "deviceProperties": [DEVICE],
        "cupti_version": 26,
        "cuda_runtime_version": 12_080,
        "cuda_driver_version": 12_080,
        **({"with_stack": 1} if recording.with_stack else {}),
        **({"record_shapes": 1} if recording.record_shapes else {}),
        "trace_id": "5D1A6F0C2B7E4D389A4E01C7B2F6D853",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1_764_547_200_000_000_000,
        "traceEvents": [*events, *_names(machine), *_window(end_ns)],
        "traceName": "trace.json",
    }


def text_of(trace: dict[str, Any]) -> str:
    return json.dumps(trace, separators=(",", ":"))


def _host(machine: Machine, span: Span, number: int, recording: Recording) -> Event:
    args = dict(span.args)
    if not recording.record_shapes:
        args = {key: value for key, value in args.items() if key not in ("Input Dims", "Input type", "Concrete Inputs")}
    if span.kind in ("cpu_op", "user_annotation", "python_function"):
        args["Ev Idx"] = number
    inside = span.kind == "overhead"
    event: Event = {
        "ph": "X",
        "cat": span.kind,
        "name": span.name,
        "pid": -1 if inside else machine.pid,
        "tid": 0 if inside else span.thread,
        "ts": micros(span.start_ns),
        "dur": (span.end_ns - span.start_ns) / 1_000,
    }
    if args:
        event["args"] = args
    return event


def _device(work: Work) -> Event:
    args: Event = {
        **{key: work.call.args[key] for key in ("External id",) if key in work.call.args},
        "device": 0,
        "context": 1,
        "stream": work.stream,
        "correlation": work.call.args["correlation"],
    }
    ns = work.end_ns - work.start_ns
    if "kernel" in work.args:
        kernel = work.args["kernel"]
        blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2] / DEVICE["numSms"]
        threads = kernel.block[0] * kernel.block[1] * kernel.block[2]
        args = {
            "queued": 0,
            **args,
            "registers per thread": kernel.registers,
            "shared memory": kernel.shared_bytes,
            "blocks per SM": round(blocks, 4),
            "warps per SM": round(blocks * threads / 32, 4),
            "grid": list(kernel.grid),
            "block": list(kernel.block),
            "est. achieved occupancy %": min(100, round(100 * blocks * threads / 2048)),
        }
    else:
        args |= {"bytes": work.args["bytes"], "memory bandwidth (GB/s)": round(work.args["bytes"] / max(ns, 1), 4)}
    times = {"ts": micros(work.start_ns), "dur": ns / 1_000}
    return {"ph": "X", "cat": work.kind, "name": work.name, "pid": 0, "tid": work.stream, **times, "args": args}


def _flow(phase: str, category: str, number: int, place: tuple[int, int], at_ns: int) -> Event:
    event: Event = {"ph": phase, "id": number, "pid": place[0], "tid": place[1], "ts": micros(at_ns)}
    return event | {"cat": category, "name": category} | ({"bp": "e"} if phase == "f" else {})


def _names(machine: Machine) -> list[Event]:
    threads = sorted({(machine.pid, span.thread) for span in machine.spans if span.kind != "overhead"})
    streams = sorted({(0, work.stream) for work in machine.works})
    found = [
        _name("process_name", machine.pid, 0, {"name": "python"}),
        _name("process_labels", machine.pid, 0, {"labels": "CPU"}),
        _name("process_name", 0, 0, {"name": "python"}),
        _name("process_labels", 0, 0, {"labels": "GPU 0"}),
    ]
    found += [_name("thread_name", pid, tid, {"name": f"thread {tid} (python)"}) for pid, tid in threads]
    return found + [_name("thread_name", pid, tid, {"name": f"stream {tid} "}) for pid, tid in streams]


def _name(what: str, pid: int, tid: int, args: Event) -> Event:
    return {"name": what, "ph": "M", "ts": micros(0), "pid": pid, "tid": tid, "args": args}


def _window(end_ns: int) -> list[Event]:
    whole = {"ts": micros(0), "dur": end_ns / 1_000, "pid": "Spans", "tid": "PyTorch Profiler"}
    start = {"ph": "i", "s": "g", "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": micros(0)}
    return [
        {"ph": "X", "cat": "Trace", **whole, "name": "PyTorch Profiler (0)", "args": {"Op count": 0}},
        {"name": "Iteration Start: PyTorch Profiler", **start},
        {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": micros(end_ns)},
    ]
