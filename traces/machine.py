"""A make-believe host and GPU that keep a diary.

A recipe calls this machine the way a script calls PyTorch: enter a Python frame, an operator, launch a kernel, wait for
the stream. Nothing runs; a clock in integer nanoseconds moves, and the machine writes down what every thread was doing
at every instant and when every piece of GPU work began and ended. `kineto.py` writes the events out as a trace,
`ledger.py` settles the accounts from the diary. Neither looks at the other, and nothing here knows torchdiag.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

LAUNCH_LATENCY_NS = 9_216
"""From the start of a launch call to the start of its kernel on an empty stream."""
KERNEL_GAP_NS = 992
"""Between two kernels of one busy stream."""


def us(amount: float) -> int:
    """Microseconds as integer nanoseconds."""
    return round(amount * 1_000)


def ms(amount: float) -> int:
    """Milliseconds as integer nanoseconds."""
    return round(amount * 1_000_000)


@dataclass(eq=False)
class Span:
    """Something on a host thread: a Python frame, an operator, an annotation or a runtime call.

    `charge` is the cause that idle time under it is charged to. `user_frame` is the innermost frame of the user's own
    code around it, (file, line, function), found through the forward operator on a backward thread.
    """

    kind: str
    name: str
    thread: "Thread"
    start: int
    charge: str
    user_frame: tuple[str, int, str] | None
    parent: "Span | None"
    args: dict[str, Any]
    end: int = -1
    loader: bool = False
    forward: "Span | None" = None

    def enclosing(self, kind: str) -> "Span | None":
        """The nearest span of `kind` around this one on its own thread."""
        around = self.parent
        while around is not None and around.kind != kind:
            around = around.parent
        return around


@dataclass(eq=False)
class Activity:
    """A piece of GPU work. `work` is its state in the partition: compute, communication, memory or transfer."""

    kind: str
    work: str
    name: str
    device: int
    stream: int
    start: int
    end: int
    launch: Span | None
    args: dict[str, Any]


@dataclass(eq=False)
class Thread:
    """A host thread; its diary says for each stretch of time which spans were open, outermost first."""

    pid: int
    tid: int
    name: str
    stack: list[Span] = field(default_factory=list)
    diary: list[tuple[int, int, tuple[Span, ...]]] = field(default_factory=list)


class Machine:
    """One process with a main thread, an autograd thread once it is needed, and the streams of its device.

    `runtime` is the vendor's prefix of runtime calls; every time is rounded up to a multiple of `quantum_ns`.
    Without `with_stack` Python frames take their time but leave no trace.
    """

    def __init__(
        self,
        *,
        start_ns: int = 1_419_247_332_596_028,
        pid: int = 4242,
        device: int = 0,
        stream: int = 7,
        runtime: str = "cuda",
        quantum_ns: int = 1,
        with_stack: bool = True,
    ) -> None:
        self.clock = start_ns
        self.start_ns = start_ns
        self.main = Thread(pid, pid, "python")
        self.autograd = Thread(pid, pid + 57, "pt_autograd_0")
        self.thread = self.main
        self.device = device
        self.stream = stream
        self.runtime = runtime
        self.quantum_ns = quantum_ns
        self.with_stack = with_stack
        self.spans: list[Span] = []
        self.activities: list[Activity] = []
        self.marks: list[Span] = []
        self.stream_ready: dict[tuple[int, int], int] = {}
        self.sequence = 0
        self.correlation = 8_200

    # Host -----------------------------------------------------------------------------------------------------------

    def run(self, ns: int) -> None:
        """Let `ns` pass while every thread keeps doing what it does."""
        ns = self.whole(ns)
        if ns <= 0:
            return
        for thread in (self.main, self.autograd):
            if thread.stack:
                thread.diary.append((self.clock, self.clock + ns, tuple(thread.stack)))
        self.clock += ns

    def whole(self, ns: int) -> int:
        """Rounded up to the machine's quantum."""
        return -(-ns // self.quantum_ns) * self.quantum_ns

    def run_until(self, instant: int) -> None:
        """Let time pass up to `instant`, if it is not past yet."""
        self.run(instant - self.clock)

    @contextmanager
    def span(self, kind: str, name: str, charge: str, *, lead: int, tail: int, **args: Any) -> Iterator[Span]:
        """Open a span on the current thread; `lead` and `tail` are its own time before and after its children."""
        stack = self.thread.stack
        parent = stack[-1] if stack else None
        frame = parent.user_frame if parent else None
        opened = Span(kind, name, self.thread, self.clock, charge, frame, parent, args)
        recorded = self.with_stack or kind != "python"
        if recorded:
            self.spans.append(opened)
            stack.append(opened)
        self.run(lead)
        yield opened
        self.run(tail)
        if recorded:
            stack.pop()
        opened.end = self.clock

    @contextmanager
    def frame(self, file: str, line: int, function: str, *, lead: int = 1_340, tail: int = 610) -> Iterator[Span]:
        """A Python frame. It is the user's own unless its file lies in torch or in the standard library."""
        name = f"{file}({line}): {function}"
        with self.span("python", name, "python", lead=0, tail=tail) as opened:
            if not file.startswith(("torch/", "queue.py", "threading.py")):
                opened.user_frame = (file, line, function)
            self.run(lead)
            yield opened

    @contextmanager
    def builtin(self, name: str, *, lead: int = 450, tail: int = 260) -> Iterator[Span]:
        """A call of a C function seen by the Python tracer."""
        with self.span("python", name, "python", lead=lead, tail=tail) as opened:
            yield opened

    @contextmanager
    def module(self, name: str, number: int) -> Iterator[Span]:
        """The frames of calling an `nn.Module`."""
        with (
            self.span("python", f"nn.Module: {name}", "python", lead=380, tail=190, module_id=number),
            self.frame("torch/nn/modules/module.py", 1779, "_call_impl", lead=520, tail=240) as opened,
        ):
            yield opened

    @contextmanager
    def op(
        self, name: str, *, lead: int = 2_110, tail: int = 730, forward: Span | None = None, **args: Any
    ) -> Iterator[Span]:
        """An operator. Give the `forward` operator when this is its backward, `dims` for the shapes of its inputs."""
        with self.span("operator", name, "framework", lead=0, tail=tail, **args) as opened:
            if forward is not None:
                opened.forward = forward
                opened.user_frame = forward.user_frame
            self.run(lead)
            yield opened

    def differentiable(self, span: Span) -> Span:
        """Give a forward operator the next sequence number of autograd."""
        self.sequence += 1
        span.args["sequence"] = self.sequence
        return span

    @contextmanager
    def annotation(self, name: str, *, lead: int = 700, tail: int = 300) -> Iterator[Span]:
        """A `record_function` range."""
        with self.span("annotation", name, "python", lead=lead, tail=tail) as opened:
            yield opened

    @contextmanager
    def loader(self, kind: str = "_MultiProcessingDataLoaderIter", *, total_ns: int) -> Iterator[Span]:
        """`next()` of a DataLoader, lasting `total_ns` from its first instant to its last."""
        end = self.clock + total_ns
        with self.annotation(f"enumerate(DataLoader)#{kind}.__next__", lead=900, tail=0) as opened:
            opened.loader = True
            with self.frame("torch/utils/data/dataloader.py", 741, "__next__", tail=0) as frame:
                yield frame
                self.run_until(end)
        if self.clock != end:
            raise ValueError(f"the loader's body took {self.clock - end} ns longer than its total")

    def mark(self, name: str | None) -> None:
        """End the open step mark, if any, and begin the one called `name`, if given."""
        if self.marks and self.marks[-1].end < 0:
            self.marks[-1].end = self.clock
        if name is not None:
            mark = Span("annotation", name, self.main, self.clock, "python", None, None, {})
            self.marks.append(mark)
            self.spans.append(mark)

    def profiler_step(self, name: str | None) -> None:
        """`prof.step()` with stacks: the marks change inside its frame."""
        with self.frame("torch/profiler/profiler.py", 939, "step"):
            self.run(us(18))
            self.mark(name)
            self.run(us(7))

    @contextmanager
    def backward_thread(self) -> Iterator[None]:
        """The autograd engine works on its own thread while the main thread waits in `run_backward`."""
        with (
            self.frame("torch/_tensor.py", 581, "backward"),
            self.frame("torch/autograd/graph.py", 829, "_engine_run_backward"),
            self.builtin("<built-in method run_backward of torch._C._EngineBase object at 0x7f2c81a4f3d0>"),
        ):
            self.run(us(21))
            self.thread = self.autograd
            yield
            self.thread = self.main
            self.run(us(11))

    @contextmanager
    def backward_of(self, forward: Span, node: str) -> Iterator[Span]:
        """The backward node of a forward operator, on the autograd thread."""
        with (
            self.op(f"autograd::engine::evaluate_function: {node}", forward=forward, lead=1_450, tail=510) as outer,
            self.op(node, forward=forward, lead=980, tail=340) as inner,
        ):
            outer.args["sequence"] = inner.args["sequence"] = forward.args["sequence"]
            yield inner

    # Runtime calls and the GPU ----------------------------------------------------------------------------------------

    @contextmanager
    def call(self, name: str, charge: str, *, lead: int, tail: int = 0) -> Iterator[Span]:
        """A runtime call: its vendor's prefix is put before `name`."""
        self.correlation += 1
        with self.span(
            "runtime", self.runtime + name, charge, lead=lead, tail=tail, correlation=self.correlation
        ) as opened:
            yield opened

    def submit(
        self,
        kind: str,
        work: str,
        name: str,
        ns: int,
        launch: Span,
        *,
        stream: int | None = None,
        not_before: int = 0,
        latency: int = LAUNCH_LATENCY_NS,
        **args: Any,
    ) -> Activity:
        """Put GPU work on a stream: it starts once launched, once the stream is free, and not before `not_before`."""
        stream = self.stream if stream is None else stream
        ready = self.stream_ready.get((self.device, stream), 0)
        start = self.whole(max(launch.start + latency, ready + KERNEL_GAP_NS, not_before))
        activity = Activity(kind, work, name, self.device, stream, start, start + self.whole(ns), launch, args)
        self.stream_ready[self.device, stream] = activity.end
        self.activities.append(activity)
        return activity

    def launch(
        self,
        name: str,
        ns: int,
        *,
        call: str = "LaunchKernel",
        cost: int = 5_312,
        work: str = "compute",
        stream: int | None = None,
        not_before: int = 0,
        latency: int = LAUNCH_LATENCY_NS,
        **args: Any,
    ) -> Activity:
        """Launch one kernel that runs for `ns`; the call itself takes `cost`."""
        with self.call(call, "launch", lead=cost) as called:
            pass
        return self.submit(
            "kernel", work, name, ns, called, stream=stream, not_before=not_before, latency=latency, **args
        )

    def copy_in(self, nbytes: int, ns: int, *, pinned: bool) -> Activity:
        """Host to device. From pageable memory the call lasts until 4 us after the copy, from pinned it returns."""
        return self.copy("HtoD", "Pinned" if pinned else "Pageable", "Device", nbytes, ns, blocking=not pinned)

    def copy_out(self, nbytes: int, ns: int) -> Activity:
        """Device to host, in stream order; on CUDA the call returns, on HIP it waits."""
        return self.copy("DtoH", "Device", "Pinned", nbytes, ns, blocking=self.runtime == "hip")

    def copy(self, direction: str, source: str, target: str, nbytes: int, ns: int, *, blocking: bool) -> Activity:
        """A copy between host and device. HIP has one blocking call for both ways and does not tell pinned memory."""
        if self.runtime == "hip":
            source, target = (place if place == "Device" else "Host" for place in (source, target))
        call, charge = ("MemcpyWithStream", "sync") if self.runtime == "hip" else ("MemcpyAsync", "copy_call")
        with self.call(call, charge, lead=6_208) as called:
            name = f"Memcpy {direction} ({source} -> {target})"
            copy = self.submit("memcpy", "transfer", name, ns, called, bytes=nbytes)
            if blocking:
                self.run_until(copy.end + us(4))
        return copy

    def copy_within(self, nbytes: int, ns: int) -> Activity:
        """Device to device."""
        with self.call("MemcpyAsync", "copy_call", lead=5_888) as called:
            pass
        return self.submit("memcpy", "memory", "Memcpy DtoD (Device -> Device)", ns, called, bytes=nbytes)

    def memset(self, nbytes: int, ns: int) -> Activity:
        """Set device memory."""
        with self.call("MemsetAsync", "copy_call", lead=4_224) as called:
            pass
        return self.submit("memset", "memory", "Memset (Device)", ns, called, bytes=nbytes)

    def synchronize(self, call: str = "StreamSynchronize", *, wake_up: int = 2_048) -> None:
        """Wait until all streams are empty; the host wakes `wake_up` after the last work ended."""
        with self.call(call, "sync", lead=1_152):
            done = max((ready for key, ready in self.stream_ready.items() if key[0] == self.device), default=0)
            self.run_until(done)
            self.run(wake_up)

    def item(self, *, wake_up: int = 2_048) -> None:
        """`tensor.item()`: a four-byte copy to the host and a wait for it (HIP waits in the copy)."""
        with self.op("aten::item"), self.op("aten::_local_scalar_dense"):
            self.copy_out(4, 1_504)
            if self.runtime != "hip":
                self.synchronize(wake_up=wake_up)
