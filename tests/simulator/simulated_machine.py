"""A host and a GPU on one clock of integer nanoseconds: a discrete-event simulation that knows nothing of any analysis.

A host thread runs a program, a generator: what only concerns the thread (Python, operators) is a plain call that moves
its own clock; what touches the shared device or another thread is a generator, so that the machine can let the thread
that is furthest behind go first. The device takes work in the order in which the host hands it over, so the times of
a piece of work are known as soon as it is submitted.
"""

import random
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

DEFAULT_STREAM = 7
PAGE_STAGING_BYTES = 64 * 1024
"""Pageable copies up to here are taken over by the driver at once; larger ones hold the caller."""
CALL_IDS = {
    "cudaMalloc": 20,
    "cudaFree": 22,
    "cudaHostAlloc": 27,
    "cudaFreeHost": 23,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaStreamSynchronize": 131,
    "cudaEventRecord": 135,
    "cudaEventSynchronize": 137,
    "cudaStreamWaitEvent": 147,
    "cudaDeviceSynchronize": 165,
    "cudaLaunchKernel": 211,
    "cudaGraphLaunch": 311,
}

Run = Generator["Signal | None", None, None]


@dataclass(frozen=True)
class Costs:
    """What things cost, in nanoseconds unless the name says otherwise."""

    launch_call_ns: int = 4_300
    graph_launch_ns: int = 24_000
    copy_call_ns: int = 5_200
    sync_call_ns: int = 1_900
    event_call_ns: int = 1_300
    launch_latency_ns: int = 2_600
    """From the end of a launch call until the device can start the work."""
    kernel_gap_ns: int = 800
    """Between two pieces of work of one busy stream."""
    graph_gap_ns: int = 700
    sync_return_ns: int = 3_400
    """From the end of the awaited work until the waiting call returns."""
    module_load_ns: int = 280_000
    """What the first launch of a kernel takes longer."""
    malloc_ns: int = 140_000
    free_ns: int = 55_000
    host_alloc_ns: int = 250_000
    host_alloc_ns_per_mib: int = 210_000
    staging_ns: int = 30_000
    """Until the first chunk of a large pageable copy is ready to go."""
    last_chunk_ns: int = 60_000
    """How long before the end of a large pageable upload its call returns."""
    pinned_bytes_per_us: int = 24_000
    pageable_bytes_per_us: int = 11_000
    device_bytes_per_us: int = 1_300_000
    copy_setup_ns: int = 1_400
    jitter: float = 0.03
    """Host times vary by up to this share either way, device times by a third of it."""


@dataclass(frozen=True)
class Kernel:
    """What the device runs: a name and a launch shape."""

    name: str
    grid: tuple[int, int, int] = (132, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    registers: int = 40
    shared_bytes: int = 0


@dataclass(eq=False)
class Span:
    """Something on a host thread. `kind` is the category of a trace event; `number` an id of operators."""

    kind: str
    name: str
    thread: int
    start_ns: int
    end_ns: int = -1
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Work:
    """Something the device does for a call."""

    kind: str
    name: str
    stream: int
    start_ns: int
    end_ns: int
    call: Span
    args: dict[str, Any]


@dataclass(eq=False)
class Signal:
    """One thread waits for it, another sets it, once."""

    set_ns: int | None = None


class LaunchQueue:
    """How much submitted work may not have started yet; a launch into a full queue waits."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._starts: list[int] = []

    def free_at(self, now_ns: int) -> int:
        """The instant, not before `now_ns`, from which there is room."""
        starts = self._starts
        while starts and starts[0] <= now_ns:
            heappop(starts)
        while len(starts) >= self.depth:
            now_ns = heappop(starts)
        return now_ns

    def put(self, start_ns: int) -> None:
        heappush(self._starts, start_ns)


class Machine:
    """One process and one GPU. What happened is in `spans` and `works`, in the order of their ends and submissions."""

    def __init__(
        self, *, seed: int = 0, costs: Costs | None = None, queue_depth: int = 1024, launch_blocking: bool = False
    ) -> None:
        self.costs = costs or Costs()
        self.launch_blocking = launch_blocking
        self.queue = LaunchQueue(queue_depth)
        self.host_chance, self.device_chance = random.Random(seed), random.Random(seed + 1)
        self.spans: list[Span] = []
        self.works: list[Work] = []
        self.stream_done_ns: dict[int, int] = {}
        self.stream_gate_ns: dict[int, int] = {}
        self.engine_done_ns: dict[str, int] = {}
        self.loaded: set[str] = set()
        self.correlation = 6_000
        self.pid = 4_321
        self._ready: list[HostThread] = []
        self._waiting: list[tuple[Signal, HostThread]] = []

    def thread(self, number: int, at_ns: int = 0) -> "HostThread":
        return HostThread(self, number, at_ns)

    def start(self, thread: "HostThread", program: Run) -> None:
        thread.program = program
        self._ready.append(thread)

    def run(self) -> None:
        """Until every program has ended. Two threads that wait for one another are an error."""
        while self._ready:
            thread = min(self._ready, key=lambda each: each.now)
            try:
                awaited = thread.program.send(None)
            except StopIteration:
                self._ready.remove(thread)
                continue
            if awaited is not None:
                self._ready.remove(thread)
                self._waiting.append((awaited, thread))
        if self._waiting:
            raise RuntimeError(f"{len(self._waiting)} threads wait for ever")

    def set(self, signal: Signal, at_ns: int) -> None:
        signal.set_ns = at_ns
        for awaited, thread in list(self._waiting):
            if awaited is signal:
                self._waiting.remove((awaited, thread))
                thread.now = max(thread.now, at_ns)
                self._ready.append(thread)

    def first(self, thread: "HostThread") -> bool:
        """Whether no other thread is behind this one."""
        return all(other is thread or other.now >= thread.now for other in self._ready)

    def device_ns(self, ns: int) -> int:
        """A device time with its jitter."""
        share = self.costs.jitter / 3
        return round(ns * (1 + self.device_chance.uniform(-share, share))) if share else ns

    def submit(self, work: Work, ns: int, *, engine: str | None = None, gap_ns: int | None = None) -> Work:
        """Give work to its stream, which may start at `work.start_ns` at the earliest; sets both its times."""
        start = max(work.start_ns, self.stream_gate_ns.get(work.stream, 0))
        if work.stream in self.stream_done_ns:
            start = max(
                start, self.stream_done_ns[work.stream] + (self.costs.kernel_gap_ns if gap_ns is None else gap_ns)
            )
        if engine is not None:
            start = max(start, self.engine_done_ns.get(engine, 0))
            self.engine_done_ns[engine] = start + ns
        work.start_ns, work.end_ns = start, start + ns
        self.stream_done_ns[work.stream] = work.end_ns
        self.works.append(work)
        self.queue.put(start)
        return work

    def done_ns(self, stream: int | None = None) -> int:
        """When what the stream (the whole device without one) has been given is done."""
        if stream is not None:
            return self.stream_done_ns.get(stream, 0)
        return max(self.stream_done_ns.values(), default=0)


class HostThread:
    """A thread of the process: its clock `now`, the spans open on it, and what it may ask of the device."""

    def __init__(self, machine: Machine, number: int, at_ns: int) -> None:
        self.machine = machine
        self.costs = machine.costs
        self.number = number
        self.now = at_ns
        self.open: list[Span] = []
        self.program: Run = iter(())  # type: ignore[assignment]

    def spend(self, ns: int) -> None:
        """Work for about `ns` on this thread alone."""
        share = self.costs.jitter
        self.now += round(ns * (1 + share * (2 * self.machine.host_chance.random() - 1))) if share else ns

    def until(self, at_ns: int) -> None:
        self.now = max(self.now, at_ns)

    def turn(self) -> Run:
        """Let threads that are behind catch up before touching what they may touch, too."""
        while not self.machine.first(self):
            yield None

    def wait(self, signal: Signal) -> Run:
        if signal.set_ns is None:
            yield signal
        self.until(signal.set_ns or 0)

    def begin(self, kind: str, name: str, args: dict[str, Any]) -> Span:
        """Open a span; spans of a thread are nested."""
        span = Span(kind, name, self.number, self.now, -1, args)
        self.open.append(span)
        return span

    def end(self) -> None:
        """Close the innermost span."""
        span = self.open.pop()
        span.end_ns = self.now
        self.machine.spans.append(span)

    @contextmanager
    def call(self, name: str) -> Iterator[Span]:
        """A call of the CUDA runtime; it belongs to the operator around it."""
        self.machine.correlation += 1
        around = next((each.args["External id"] for each in reversed(self.open) if "External id" in each.args), None)
        args = {} if around is None else {"External id": around}
        args |= {"cbid": CALL_IDS[name], "correlation": self.machine.correlation}
        yield self.begin("cuda_runtime", name, args)
        self.end()

    def _submit(self, call: Span, kind: str, name: str, ns: int, **args: Any) -> Work:
        """Work that arrives one launch latency from now."""
        arrival = args.pop("arrival_ns", self.now + self.costs.launch_latency_ns)
        stream, engine, gap = args.pop("stream"), args.pop("engine", None), args.pop("gap_ns", None)
        return self.machine.submit(Work(kind, name, stream, arrival, -1, call, args), ns, engine=engine, gap_ns=gap)

    def _room(self) -> Run:
        self.until(self.machine.queue.free_at(self.now))
        yield from self.turn()

    def launch(self, kernel: Kernel, ns: int, *, stream: int = DEFAULT_STREAM) -> Run:
        """`cudaLaunchKernel`: queues a kernel of about `ns`; waits only for room in the queue, or if told to."""
        yield from self.turn()
        with self.call("cudaLaunchKernel") as call:
            self.spend(self.costs.launch_call_ns)
            if kernel.name not in self.machine.loaded:
                self.machine.loaded.add(kernel.name)
                start = self.now
                self.spend(self.costs.module_load_ns)
                self.machine.spans.append(Span("overhead", "Lazy Function Loading", 0, start, self.now))
            yield from self._room()
            work = self._submit(call, "kernel", kernel.name, self.machine.device_ns(ns), stream=stream, kernel=kernel)
            if self.machine.launch_blocking:
                self.until(work.end_ns + self.costs.sync_return_ns)

    def launch_graph(self, kernels: list[tuple[Kernel, int]], *, stream: int = DEFAULT_STREAM) -> Run:
        """`cudaGraphLaunch`: one call for many kernels, which follow each other closely."""
        yield from self.turn()
        with self.call("cudaGraphLaunch") as call:
            self.spend(self.costs.graph_launch_ns)
            yield from self._room()
            for number, (kernel, ns) in enumerate(kernels):
                gap = {"gap_ns": self.costs.graph_gap_ns} if number else {}
                self._submit(
                    call, "kernel", kernel.name, self.machine.device_ns(ns), stream=stream, kernel=kernel, **gap
                )

    def fill(self, nbytes: int, *, stream: int = DEFAULT_STREAM) -> Run:
        """`cudaMemsetAsync`."""
        yield from self.turn()
        with self.call("cudaMemsetAsync") as call:
            self.spend(self.costs.launch_call_ns)
            yield from self._room()
            ns = self.costs.copy_setup_ns + nbytes * 1_000 // self.costs.device_bytes_per_us
            self._submit(call, "gpu_memset", "Memset (Device)", self.machine.device_ns(ns), stream=stream, bytes=nbytes)

    def copy(self, direction: str, nbytes: int, *, pinned: bool, stream: int = DEFAULT_STREAM) -> Run:
        """`cudaMemcpyAsync` between host and device (`HtoD`, `DtoH`).

        From and to pinned memory it returns at once. A large pageable upload holds the caller until its last chunk is
        on the way, a pageable download until it is done.
        """
        yield from self.turn()
        costs, upload = self.costs, direction == "HtoD"
        memory = "Pinned" if pinned else "Pageable"
        name = f"Memcpy HtoD ({memory} -> Device)" if upload else f"Memcpy DtoH (Device -> {memory})"
        staged = upload and not pinned and nbytes > PAGE_STAGING_BYTES
        rate = costs.pinned_bytes_per_us if pinned or nbytes <= PAGE_STAGING_BYTES else costs.pageable_bytes_per_us
        ns = self.machine.device_ns(costs.copy_setup_ns + nbytes * 1_000 // rate)
        with self.call("cudaMemcpyAsync") as call:
            self.spend(costs.copy_call_ns)
            yield from self._room()
            arrival = self.now + (costs.staging_ns if staged else costs.launch_latency_ns)
            work = self._submit(
                call, "gpu_memcpy", name, ns, stream=stream, engine=direction, arrival_ns=arrival, bytes=nbytes
            )
            if staged:
                self.until(work.end_ns - min(costs.last_chunk_ns, ns // 4))
            elif not upload and not pinned:
                self.until(work.end_ns + costs.sync_return_ns)

    def synchronize(self, stream: int | None = DEFAULT_STREAM) -> Run:
        """`cudaStreamSynchronize`, or `cudaDeviceSynchronize` without a stream: waits for all work given so far."""
        yield from self.turn()
        with self.call("cudaDeviceSynchronize" if stream is None else "cudaStreamSynchronize"):
            self.spend(self.costs.sync_call_ns)
            done = self.machine.done_ns(stream)
            if done > self.now:
                self.until(done + self.costs.sync_return_ns)

    def record(self, stream: int = DEFAULT_STREAM) -> Generator[Signal | None, None, int]:
        """`cudaEventRecord`: the instant at which the stream reaches the event."""
        yield from self.turn()
        with self.call("cudaEventRecord"):
            self.spend(self.costs.event_call_ns)
        return max(self.machine.done_ns(stream), self.now)

    def wait_event(self, event_ns: int, stream: int) -> Run:
        """`cudaStreamWaitEvent`: the stream's next work does not start before the event; the host goes on."""
        yield from self.turn()
        with self.call("cudaStreamWaitEvent"):
            self.spend(self.costs.event_call_ns)
        gates = self.machine.stream_gate_ns
        gates[stream] = max(gates.get(stream, 0), event_ns)

    def synchronize_event(self, event_ns: int) -> Run:
        """`cudaEventSynchronize`."""
        yield from self.turn()
        with self.call("cudaEventSynchronize"):
            self.spend(self.costs.sync_call_ns)
            if event_ns > self.now:
                self.until(event_ns + self.costs.sync_return_ns)

    def allocate(self) -> Run:
        """`cudaMalloc`."""
        yield from self.turn()
        with self.call("cudaMalloc"):
            self.spend(self.costs.malloc_ns)

    def free(self) -> Run:
        """`cudaFree`, which waits for the device."""
        yield from self.turn()
        with self.call("cudaFree"):
            self.until(self.machine.done_ns())
            self.spend(self.costs.free_ns)

    def allocate_pinned(self, nbytes: int) -> Run:
        """`cudaHostAlloc`: every page is pinned."""
        yield from self.turn()
        with self.call("cudaHostAlloc"):
            self.spend(self.costs.host_alloc_ns + nbytes * self.costs.host_alloc_ns_per_mib // 2**20)
