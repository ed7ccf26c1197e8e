"""Writes what a make-believe machine did the way PyTorch's Kineto writes it.

Three manners: `modern` (torch 2.x on CUDA), `rocm` (torch 2.x on HIP, which writes some integers as strings) and
`legacy` (torch 1.8: other categories, whole microseconds, threads as strings). Times are decimal microseconds with the
nanoseconds as three decimals, so reading them as floats loses digits, as it does with real traces.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from machine import Activity, Machine, Span

MODERN = {
    "operator": "cpu_op", "python": "python_function", "annotation": "user_annotation", "runtime": "cuda_runtime",
    "kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset", "flow": "ac2g", "flow_name": "ac2g",
}  # fmt: skip
LEGACY = {
    "operator": "Operator", "annotation": "Operator", "runtime": "Runtime",
    "kernel": "Kernel", "memcpy": "Memcpy", "memset": "Memset", "flow": "async", "flow_name": "launch",
}  # fmt: skip

GPU = {
    "cuda": {
        "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42298834944, "computeMajor": 8, "computeMinor": 0,
        "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 32,
        "sharedMemPerBlock": 49152, "numSms": 108,
    },
    "hip": {
        "name": "AMD Instinct MI250X", "totalGlobalMem": 68702699520, "computeMajor": 9, "computeMinor": 0,
        "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 64,
        "sharedMemPerBlock": 65536, "numSms": 110,
    },
}  # fmt: skip


class Event(NamedTuple):
    """The text of one element of `traceEvents`, and what it tells of (None for flows and metadata)."""

    text: str
    owner: Span | Activity | None


class Writer:
    """The trace of one machine in one manner, event by event."""

    def __init__(self, machine: Machine, *, manner: str = "modern", torch: str = "2.9.0", **top_level: Any) -> None:
        self.machine = machine
        self.manner = manner
        self.words = LEGACY if manner == "legacy" else MODERN
        self.top_level = top_level
        self.torch = torch
        by_start = sorted(machine.spans, key=lambda span: span.start)
        self.host = [span for span in by_start if span.kind in ("operator", "annotation")]
        self.python = [span for span in by_start if span.kind == "python"]
        self.calls = [span for span in by_start if span.kind == "runtime"]
        self.event_index = {span: index for index, span in enumerate(self.host + self.python)}
        self.external_id = {span: index for index, span in enumerate(self.host, 1)}
        self.python_id = {span: index for index, span in enumerate(self.python, 1)}
        self.launched: dict[Span | None, list[Activity]] = {}
        for activity in machine.activities:
            self.launched.setdefault(activity.launch, []).append(activity)

    # The document ---------------------------------------------------------------------------------------------------

    def document(self) -> str:
        """The whole file."""
        return self.head() + ",\n".join(event.text for event in self.events()) + self.tail()

    def head(self) -> str:
        """Everything before the first event."""
        if self.manner == "legacy":
            return '\n{\n  "schemaVersion": 1,\n  "traceEvents": [\n  \n'
        vendor = self.machine.runtime
        keys: dict[str, Any] = {
            "deviceProperties": [{"id": self.machine.device, **GPU[vendor]}] if vendor in GPU else [],
            **({"cuda_runtime_version": 12080, "cuda_driver_version": 12080} if vendor == "cuda" else {}),
            "record_shapes": int(any("dims" in span.args for span in self.host)),
            "with_stack": int(bool(self.python)),
            "trace_id": "0123456789ABCDEF0123456789ABCDEF",
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": 1_751_410_836_000_000_000,
            "torch_version": self.torch,
            **self.top_level,
        }
        lines = [f"  {json.dumps(key)}: {json.dumps(value)},\n" for key, value in keys.items()]
        return '{\n  "schemaVersion": 1,\n' + "".join(lines) + '  "traceEvents": [\n'

    def tail(self) -> str:
        """Everything after the last event."""
        return "\n]}\n" if self.manner == "legacy" else '\n  ],\n  "traceName": "trace.json"\n}\n'

    def events(self) -> Iterator[Event]:
        """All events, in Kineto's order: operators, Python frames, runtime calls with their GPU work, window marks."""
        if self.manner != "legacy":
            yield from self.metadata()
        for span in self.host:
            yield self.host_event(span)
            yield from self.forward_backward_flow(span)
        for span in self.python:
            yield self.python_event(span)
        for call in self.calls:
            yield from self.runtime_events(call)
        for activity in self.launched.get(None, []):
            yield self.device_event(activity)
        if self.manner == "legacy":
            yield from self.metadata()
        yield from self.window_events()

    # Host events ----------------------------------------------------------------------------------------------------

    def host_event(self, span: Span) -> Event:
        """An operator or annotation."""
        args: dict[str, Any] = {"External id": self.external_id[span]}
        if self.manner == "legacy":
            args |= {"Device": span.thread.tid, "Input dims": [], "Trace name": "PyTorch Profiler"}
        else:
            args["Record function id"] = 0
        if "sequence" in span.args:
            args |= {"Sequence number": span.args["sequence"], "Fwd thread id": 0 if span.forward is None else 1}
        if "dims" in span.args:
            dims = span.args["dims"]
            args |= {"Input type": ["float" if dim else "" for dim in dims], "Input Dims": dims}
        if self.manner != "legacy":
            args["Ev Idx"] = self.event_index[span]
        return self.complete(span, self.words[span.kind], span.name, args)

    def python_event(self, span: Span) -> Event:
        """A Python frame."""
        parent = span.enclosing("python")
        args: dict[str, Any] = {"Python parent id": self.python_id.get(parent) if parent else None}
        args["Python id"] = self.python_id[span]
        if "module_id" in span.args:
            args["Python module id"] = span.args["module_id"]
        args["Ev Idx"] = self.event_index[span]
        return self.complete(span, self.words["python"], span.name, args)

    def forward_backward_flow(self, span: Span) -> Iterator[Event]:
        """The arrow from a forward operator to its backward node."""
        if self.manner == "legacy" or "sequence" not in span.args:
            return
        if span.forward is None:
            yield self.flow("s", span.args["sequence"], span.thread.pid, span.thread.tid, span.start, "fwdbwd")
        elif not span.name.startswith("autograd::engine"):
            yield self.flow("f", span.args["sequence"], span.thread.pid, span.thread.tid, span.start, "fwdbwd")

    def runtime_events(self, call: Span) -> Iterator[Event]:
        """A runtime call, the GPU work that it began, and the arrow between them."""
        correlation = call.args["correlation"]
        parent = call.enclosing("operator")
        args: dict[str, Any] = {"cbid": 211, "correlation": correlation}
        if parent is not None:
            args = {"External id" if self.manner != "legacy" else "external id": self.external_id[parent], **args}
        if self.manner == "rocm" and call.charge == "launch":
            args |= {"stream": hex(self.machine.stream), "grid": [1024, 1, 1], "block": [256, 1, 1]}
        elif self.manner == "rocm" and "Memcpy" in call.name:
            (copy,) = self.launched[call]
            args |= {"stream": hex(self.machine.stream), "size": str(copy.args["bytes"]), "kind": "1"}
        yield self.complete(call, self.words["runtime"], call.name, args)
        works = self.launched.get(call, [])
        if works:
            yield self.flow("s", correlation, call.thread.pid, call.thread.tid, call.start, self.words["flow"])
        for activity in works:
            yield self.device_event(activity)
            tid = f"stream {activity.stream}" if self.manner == "legacy" else activity.stream
            yield self.flow("f", correlation, activity.device, tid, activity.start, self.words["flow"])

    # Device events --------------------------------------------------------------------------------------------------

    def device_event(self, activity: Activity) -> Event:
        """A kernel, copy or memset."""
        legacy, args = self.manner == "legacy", dict(activity.args)
        common: dict[str, Any] = {"device": activity.device, "context": 1, "stream": activity.stream}
        common["correlation"] = activity.launch.args["correlation"] if activity.launch else 0
        parent = activity.launch.enclosing("operator") if activity.launch else None
        external = self.external_id[parent] if parent else 0
        common = {"external id" if legacy else "External id": external, **common}
        if activity.kind == "kernel":
            grid = {"grid": args.pop("grid", [1024, 1, 1]), "block": args.pop("block", [256, 1, 1])}
            common |= {"registers per thread": 32, "shared memory": 0, **grid}
            if self.manner == "modern":
                common["est. achieved occupancy %"] = 63
        else:
            nbytes = args.pop("bytes")
            common["bytes"] = str(nbytes) if self.manner == "rocm" else nbytes
            common["memory bandwidth (GB/s)"] = nbytes / (activity.end - activity.start)
        tid = f"stream {activity.stream}" if legacy else activity.stream
        return Event(
            self.complete_text(
                self.words[activity.kind], activity.name, (activity.device, tid), activity.start, activity.end,
                {**common, **args},
            ),
            activity,
        )  # fmt: skip

    # Texts ----------------------------------------------------------------------------------------------------------

    def stamp(self, ns: int) -> str:
        """Decimal microseconds."""
        if self.manner != "legacy":
            return f"{ns // 1000}.{ns % 1000:03}"
        if ns % 1000:
            raise ValueError("torch 1.8 wrote whole microseconds; the recipe has a finer time")
        return str(ns // 1000)

    def complete(self, span: Span, category: str, name: str, args: dict[str, Any]) -> Event:
        """An event of a host thread."""
        tid = str(span.thread.tid) if self.manner == "legacy" else span.thread.tid
        return Event(self.complete_text(category, name, (span.thread.pid, tid), span.start, span.end, args), span)

    def complete_text(
        self, category: str, name: str, track: tuple[int, int | str], start: int, end: int, args: dict[str, Any]
    ) -> str:
        """An event of phase X."""
        ts, dur = self.stamp(start), self.stamp(end - start)
        pairs = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in args.items())
        if self.manner == "legacy":
            return element(
                f'"ph": "X", "cat": "{category}", \n    {keys(name=name, pid=track[0], tid=track[1])}',
                f'"ts": {ts}, "dur": {dur}',
                f'"args": {{\n      {pairs}\n    }}',
            )
        return element(
            *one_a_line(ph="X", cat=category, name=name, pid=track[0], tid=track[1]),
            f'"ts": {ts}',
            f'"dur": {dur}\n    ',
            f'"args": {{\n      {pairs}\n    }}',
        )

    def flow(self, phase: str, number: int, pid: int, tid: int | str, start: int, category: str) -> Event:
        """One end of an arrow."""
        name = category if category == "fwdbwd" else self.words["flow_name"]
        bound = {"bp": "e"} if phase == "f" else {}
        lines = one_a_line(ph=phase, id=number, pid=pid, tid=tid)
        return Event(element(*lines, f'"ts": {self.stamp(start)}', *one_a_line(cat=category, name=name, **bound)), None)

    def metadata(self) -> Iterator[Event]:
        """Names of processes and threads."""
        machine = self.machine
        names: list[tuple[str, int, int | str, dict[str, Any]]] = [
            ("process_name", machine.main.pid, 0, {"name": "python"}),
            ("process_labels", machine.main.pid, 0, {"labels": "CPU"}),
        ]
        if machine.activities:
            names += [
                ("process_name", machine.device, 0, {"name": "python"}),
                ("process_labels", machine.device, 0, {"labels": f"GPU {machine.device}"}),
            ]
        for thread in (machine.main, machine.autograd):
            if thread.diary:
                tid = str(thread.tid) if self.manner == "legacy" else thread.tid
                names.append(("thread_name", thread.pid, tid, {"name": f"thread {thread.tid} ({thread.name})"}))
        for device, stream in sorted(machine.stream_ready):
            tid = f"stream {stream}" if self.manner == "legacy" else stream
            names.append(("thread_name", device, tid, {"name": f"stream {stream} "}))
        ts = f'"ts": {self.stamp(machine.start_ns)}'
        for name, pid, tid, args in names:
            yield Event(element(*one_a_line(ph="M", name=name), ts, *one_a_line(pid=pid, tid=tid, args=args)), None)

    def window_events(self) -> Iterator[Event]:
        """The span of the recording and the two marks around it."""
        start, end = self.machine.start_ns, self.machine.clock
        profiler = one_a_line(ph="X", cat="Trace", name="PyTorch Profiler (0)", pid="Spans", tid="PyTorch Profiler")
        times = (f'"ts": {self.stamp(start)}', f'"dur": {self.stamp(end - start)}')
        yield Event(element(*profiler, *times, *one_a_line(args={"Op count": 0})), None)
        for name, pid, tid, instant in (
            ("Iteration Start: PyTorch Profiler", "Traces", "Trace PyTorch Profiler", start),
            ("Record Window End", "", "", end),
        ):
            lines = one_a_line(ph="i", s="g", name=name, pid=pid, tid=tid)
            yield Event(element(*lines, f'"ts": {self.stamp(instant)}'), None)


def one_a_line(**values: Any) -> list[str]:
    """JSON members, each to stand on its own line."""
    return [f'"{key}": {json.dumps(value)}' for key, value in values.items()]


def keys(**values: Any) -> str:
    """JSON members on one line."""
    return ", ".join(one_a_line(**values))


def element(*lines: str) -> str:
    """One element of `traceEvents`."""
    return "  {\n    " + ",\n    ".join(lines) + "\n  }"
