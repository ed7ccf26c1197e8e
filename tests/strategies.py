"""Hypothesis strategies: small traces in which everything that can happen on a timeline happens by chance.

Times are few multiples of a unit, so that borders meet; units reach from one nanosecond to where launch latency and
faulty durations begin.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from written import (
    Event,
    annotation,
    arrow,
    call,
    copy,
    event,
    fill,
    frame,
    kernel,
    mark,
    microseconds,
    operator,
    overhead,
)

THREADS = (1, 2, 3)
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
LOADER_FRAME = "torch/utils/data/dataloader.py(703): __next__"
LAUNCHES = (
    "cudaLaunchKernel",
    "cuLaunchKernelEx",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "cudaMemcpy",
    "cudaGraphLaunch",
)
CALLS = (
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaMalloc",
    "cudaFree",
    "cudaEventRecord",
    "cudaMemcpyAsync",
)
LEGACY = {
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
    "gpu_memset": "Memset",
    "cuda_runtime": "Runtime",
    "cpu_op": "Operator",
    "user_annotation": "Operator",
}

places = st.integers(0, 40)
lengths = st.one_of(st.integers(1, 12), st.integers(0, 40))
threads = st.sampled_from(THREADS)


@dataclass(frozen=True, slots=True)
class Clock:
    """Places on the timeline are `base + unit * place` nanoseconds."""

    base: int
    unit: int

    def at(self, place: int) -> int:
        return self.base + self.unit * place


clocks = st.builds(
    Clock, st.sampled_from((0, 10**9, 1_712_195_495_519_689_047)), st.sampled_from((1, 333, 20_000, 400_000))
)


@st.composite
def host_events(draw: st.DrawFn, clock: Clock, thread: st.SearchStrategy[int] = threads) -> Event:
    """Something a host thread does that launches nothing."""
    start, length, here = clock.at(draw(places)), clock.unit * draw(lengths), draw(thread)
    sort = draw(st.sampled_from(("operator", "frame", "annotation", "loader", "loader frame", "overhead", "call")))
    if sort == "call":
        return call(start, length, 0, name=draw(st.sampled_from(CALLS)), thread=here)
    if sort == "overhead":
        return overhead(start, length, thread=here)
    if sort == "operator":
        return operator(start, length, draw(st.sampled_from(("aten::mm", "aten::add"))), thread=here)
    if sort in ("frame", "loader frame"):
        return frame(start, length, LOADER_FRAME if sort == "loader frame" else "train.py(8): step", thread=here)
    return annotation(start, length, LOADER if sort == "loader" else "forward", thread=here)


@st.composite
def works(draw: st.DrawFn, start: int, clock: Clock, correlation: int) -> Event:
    """Something a device does."""
    length = clock.unit * draw(lengths)
    lane: dict[str, Any] = {"device": draw(st.sampled_from((0, 0, 0, 1))), "stream": draw(st.sampled_from((7, 7, 20)))}
    sort = draw(st.sampled_from(("kernel", "kernel", "kernel", "nccl", "copy", "fill")))
    if sort == "copy":
        return copy(start, length, correlation, kind=draw(st.sampled_from(("HtoD", "DtoH", "DtoD", "PtoP"))), **lane)
    if sort == "fill":
        return fill(start, length, correlation, **lane)
    name = "ncclDevKernel_AllReduce_Sum_f32" if sort == "nccl" else "gemm"
    return kernel(start, length, correlation, name=name, **lane)


@st.composite
def launched(draw: st.DrawFn, clock: Clock, correlation: int) -> list[Event]:
    """A launch call and the work it launched: usually one, sometimes none, several (a graph) or of another number."""
    place, thread = draw(places), draw(threads)
    submit = call(
        clock.at(place), clock.unit * draw(lengths), correlation, name=draw(st.sampled_from(LAUNCHES)), thread=thread
    )
    count = draw(st.sampled_from((0, 1, 1, 1, 1, 3)))
    starts = [clock.at(place + draw(st.integers(-2, 25))) for _ in range(count)]
    known = draw(st.sampled_from((correlation, correlation, correlation, correlation, 0, 9000 + correlation)))
    return [submit, *(draw(works(start, clock, known)) for start in starts)]


@st.composite
def marks(draw: st.DrawFn, clock: Clock, least: int) -> list[Event]:
    """Steps one after the other, or none; sometimes on two threads."""
    borders = sorted(draw(st.lists(places, min_size=least, max_size=4, unique=True)))
    here = draw(st.sampled_from((1, 1, 2)))
    found = [
        mark(number, clock.at(left), clock.unit * (right - left), thread=here)
        for number, (left, right) in enumerate(pairwise(borders))
    ]
    return found + ([dict(found[0], tid=3)] if found and draw(st.integers(0, 5)) == 0 else [])


@st.composite
def bystanders(draw: st.DrawFn, clock: Clock) -> Event:
    """Rows that must not count as anything."""
    start, length = clock.at(draw(places)), clock.unit * draw(lengths)
    return draw(
        st.sampled_from(
            (
                {"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "args": {"name": "python"}},
                {
                    "ph": "i",
                    "s": "t",
                    "name": "[memory]",
                    "pid": 100,
                    "tid": 1,
                    "ts": microseconds(start),
                    "args": {"Bytes": -512},
                },
                event("gpu_user_annotation", "ProfilerStep#1", start, length, (0, 7), {"device": 0, "stream": 7}),
                event("cuda_sync", "Stream Sync", start, length, (0, 7), {"device": 0, "stream": 7}),
                event("Trace", "PyTorch Profiler (0)", start, length, ("Traces", "PyTorch Profiler"), {}),
                kernel(start, -length - 1, 1),
                operator(start, -length - 1),
                arrow("s", 1, start, (100, 1)),
                arrow("f", 1, start, (0, 7)),
                arrow("s", 2, start, (100, 2), "fwdbwd"),
            )
        )
    )


def to_legacy(events: list[Event]) -> list[Event]:
    """The same in the words of torch 1.8: no correlation, linked by External id or by arrows."""
    old, arrows = [], []
    for item in events:
        changed = dict(item, cat=LEGACY.get(item.get("cat"), item.get("cat"))) if "cat" in item else item
        args = dict(item.get("args", {}))
        number = args.pop("correlation", 0)
        work = changed.get("cat") in ("Kernel", "Memcpy", "Memset")
        if number and changed.get("cat") in ("Kernel", "Memcpy", "Memset", "Runtime"):
            if number % 2:
                args["External id" if work else "external id"] = str(number // 3)
            else:
                time = {"ts": item["ts"], "pid": item["pid"], "tid": item["tid"]}
                arrows.append({"ph": "f" if work else "s", "id": number, "cat": "async", "name": "launch", **time})
        old.append(dict(changed, args=args) if "args" in item else changed)
    return old + arrows


@st.composite
def traces(
    draw: st.DrawFn, *, legacy: bool | None = None, stepped: bool = False, clock: st.SearchStrategy[Clock] = clocks
) -> list[Event]:
    """The events of a small trace, in any order; `legacy` chooses the schema, `stepped` makes sure there are steps."""
    time = draw(clock)
    events = draw(marks(time, 2 if stepped else 0))
    for number in range(draw(st.integers(0, 6))):
        events += draw(launched(time, number + 1))
    events += draw(st.lists(host_events(time), max_size=8))
    events += draw(st.lists(places.flatmap(lambda place: works(time.at(place), time, 0)), max_size=2))
    events += draw(st.lists(bystanders(time), max_size=3))
    if time.base and draw(st.integers(0, 4)) == 0:
        events.append(draw(works(0, time, 1)))
    if legacy or (legacy is None and draw(st.integers(0, 4)) == 0):
        events = to_legacy(events)
    return draw(st.permutations(events))


layouts = st.sampled_from(("compact", "pretty", "kineto"))


# Values that make a reader stumble.

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from((0, -1, 7, 2**63, 2**64, 10**25)),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.sampled_from(("0x0", "616", " 12 ", "12.5", "0x1F", "-3", "N", "")),
)
times = st.one_of(
    st.integers(-(10**6), 2 * 10**18).map(microseconds),
    st.sampled_from(
        ("0", "-0.0005", "1.0005", "1.0004999", "12345.6785", "1e3", "1.5E-2", "1712195495519689.047", "7")
    ).map(type(microseconds(0))),
    st.sampled_from(("12.345", "soon", None)),
)
INTEGER_KEYS = (
    "correlation",
    "External id",
    "external id",
    "stream",
    "device",
    "bytes",
    "size",
    "Addr",
    "Python id",
    "Rank",
)
FLOAT_KEYS = ("est. achieved occupancy %", "memory bandwidth (GB/s)")
TEXT_KEYS = ("grid", "kind", "Input Dims", "Collective name", "Call stack", "name", "labels", "Concrete Inputs")
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=2)),
    max_leaves=6,
)
arguments = st.dictionaries(
    st.one_of(st.sampled_from((*INTEGER_KEYS, *FLOAT_KEYS, *TEXT_KEYS)), texts), st.one_of(numbers, values), max_size=6
)


@st.composite
def odd_events(draw: st.DrawFn) -> Event:
    """An event with any of the fields, of any plausible type, in any order."""
    fields: dict[str, Any] = {
        "ph": draw(
            st.sampled_from(("X", "X", "M", "i", "s", "f", "t", "B", "")),
        ),
        "cat": draw(st.one_of(st.sampled_from(("kernel", "cpu_op", "ac2g")), texts)),
        "name": draw(st.one_of(texts, st.none())),
        "pid": draw(st.one_of(st.integers(0, 3), texts, st.sampled_from(("12", "-1")))),
        "tid": draw(st.one_of(st.integers(0, 2**40), texts)),
        "ts": draw(times),
        "dur": draw(times),
        "id": draw(st.one_of(st.integers(0, 9), texts)),
        "args": draw(st.one_of(arguments, arguments, arguments, st.none(), st.just("none"))),
    }
    kept = draw(st.lists(st.sampled_from(sorted(fields)), unique=True))
    return {key: fields[key] for key in kept}
