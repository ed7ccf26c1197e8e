"""Steps written by hand for the rules about kernels: operators with their arguments, and the kernels they launch."""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference.reader import trace_of
from written import Event, call, frame, kernel, mark, microseconds, operator, parsed

from torchdiag.findings.rule import Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts

US, MS = 1_000, 1_000_000
STEP = 10 * MS
"""Nanoseconds of a step."""
Body = Callable[[int, int], Iterable[Event]]
"""The events of a step, by its start and the first correlation that it may use."""
A100 = {"name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0}
RTX = {"name": "NVIDIA GeForce RTX 3060", "computeMajor": 8, "computeMinor": 6}
V100 = {"name": "Tesla V100-SXM2-16GB", "computeMajor": 7, "computeMinor": 0}
PASCAL = {"name": "Quadro GP100", "computeMajor": 6, "computeMinor": 0}
MI300 = {"name": "AMD Instinct MI300X", "computeMajor": 9, "computeMinor": 4}
OTHER_WORK = "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int, float const*)"
"""A kernel that no rule accuses."""


def steps(body: Body, *, device: dict[str, Any] = A100, count: int = 3, marks: bool = True) -> Facts:
    """A trace of `count` steps of 10 ms, each with one body; a kernel waits for those before it on its stream."""
    events: list[Event] = []
    for number in range(count):
        start = number * STEP
        events += [mark(number, start, STEP)] if marks else []
        events += queued(body(start, 1 + number * 10_000))
    return Facts.of(trace_of(parsed(events), {"deviceProperties": [device]}))


def queued(events: Iterable[Event]) -> list[Event]:
    """The events, kernels begun when those before them on the stream are over."""
    answer, over = list(events), {}
    for index in sorted(range(len(answer)), key=lambda index: Decimal(answer[index]["ts"])):
        item = answer[index]
        if item["cat"] == "kernel":
            begun = max(Decimal(item["ts"]), over.get(item["tid"], Decimal(0)))
            over[item["tid"]] = begun + Decimal(item["dur"])
            answer[index] = {**item, "ts": microseconds(int(begun * 1000))}
    return answer


def op(
    at: int, length: int, name: str, dims: Sequence[Any] = (), types: Sequence[str] = (), values: Sequence[str] = (),
    **more: Any,
) -> Event:  # fmt: skip
    """An operator with what it was called with."""
    item = operator(at, length, name)
    told = {"Input Dims": dims, "Input type": types, "Concrete Inputs": values, **more}
    return {**item, "args": {key: value for key, value in told.items() if value != ()}}


def runs(
    at: int, correlation: int, name: str, kernels: dict[str, int] | Sequence[tuple[str, int]], *outer: Event,
    dims: Sequence[Any] = (), types: Sequence[str] = (), values: Sequence[str] = (), line: str | None = None,
    **more: Any,
) -> list[Event]:  # fmt: skip
    """An operator of 20 us at `at` that launches kernels, told by name and nanoseconds, one after the other."""
    events = [*outer, op(at, 20 * US, name, dims, types, values)]
    if line is not None:
        events.insert(0, frame(at - 1 * US, 22 * US, line))
    begun = at + 10 * US
    pairs = list(kernels.items()) if isinstance(kernels, dict) else list(kernels)
    for number, (called, took) in enumerate(pairs):
        events.append(call(at + (1 + number) * US, 500, correlation + number))
        ran = kernel(begun, took, correlation + number, name=called)
        events.append({**ran, "args": {**ran["args"], **more}})
        begun += took + 100
    return events


def other(at: int, correlation: int, took: int) -> list[Event]:
    """Work that is accused of nothing."""
    return runs(at, correlation, "aten::max_pool2d_with_indices", {OTHER_WORK: took})


def accused(rule: Rule, facts: Facts) -> list[Suspect]:
    """What a rule says; its evidence is in order: rows of the trace, in steady steps, each once, and plain text."""
    found = list(rule.check(facts))
    for suspect in found:
        assert suspect.rows.dtype == np.int64
        assert len(np.unique(suspect.rows)) == len(suspect.rows) > 0
        assert (suspect.title + suspect.fix + suspect.reason).isascii()
        assert "  " not in suspect.title + suspect.fix + suspect.reason
    return found


def only(rule: Rule, facts: Facts) -> Suspect:
    """The one thing that a rule says."""
    (suspect,) = accused(rule, facts)
    return suspect


def change_of(suspect: Suspect) -> Change:
    """What the fix takes away."""
    assert suspect.change is not None
    return suspect.change


def names(facts: Facts, rows: NDArray[np.int64]) -> list[str]:
    """The distinct names of rows, in order."""
    return sorted({facts.trace.names[code] for code in facts.trace.name[rows].tolist()})
