"""Steps written by hand in which the host waits for the device, for the rules about waiting and about batches."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray
from reference.reader import trace_of
from written import Event, annotation, call, event, frame, kernel, mark, operator, parsed

from torchdiag.findings.rule import Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts

STEP = 1_000_000
"""Nanoseconds of a step."""
Body = Callable[[int, int], Iterable[Event]]
"""The events of a step, by its start and the first correlation that it may use."""

WAIT = 20_000
"""Nanoseconds that each of these waits takes."""


def steps(body: Body, *, count: int = 4, marks: bool = True, more: Iterable[Event] = ()) -> Facts:
    """A trace of `count` steps of 1 ms that begin and end with a kernel, with `body` between them."""
    events = list(more)
    for number in range(count):
        start, first = number * STEP, 1 + number * 1000
        events += [mark(number, start, STEP)] if marks else []
        events += [*launch(start + 1_000, first), *body(start, first + 10), *launch(start + 950_000, first + 999)]
    return Facts.of(trace_of(parsed(events), {}))


def launch(at: int, correlation: int, took: int = 20_000) -> list[Event]:
    return [call(at, 4_000, correlation), kernel(at + 10_000, took, correlation)]


def below(names: Iterable[str], at: int, length: int) -> list[Event]:
    """Operators and frames, each inside of the one before; a name with a `(` or `<` is a frame's."""
    return [
        (frame if "(" in name or "<" in name else operator)(at + 10 * depth, length - 20 * depth, name)
        for depth, name in enumerate(names)
    ]


def read(
    at: int, correlation: int, *names: str, size: int = 4, kind: str = "DtoH", pinned: bool = False
) -> list[Event]:
    """A copy that the host waits for, at the bottom of the named operators and frames; it takes `WAIT`."""
    ends = {"DtoH": "Device -> {}", "HtoD": "{} -> Device"}[kind].format("Pinned" if pinned else "Pageable")
    args = {"device": 0, "stream": 7, "correlation": correlation, "bytes": size}
    return [
        *below(names, at, WAIT),
        call(at + 1_000, 2_000, correlation, name="cudaMemcpyAsync"),
        event("gpu_memcpy", f"Memcpy {kind} ({ends})", at + 5_000, 4_000, (0, 7), args),
        call(at + 4_000, 12_000, 0, name="cudaStreamSynchronize"),
    ]


def item(at: int, correlation: int, *outer: str, size: int = 4) -> list[Event]:
    return read(at, correlation, *outer, "aten::item", "aten::_local_scalar_dense", size=size)


def truth(at: int, correlation: int, *outer: str) -> list[Event]:
    return item(at, correlation, *outer, "aten::is_nonzero", size=1)


def fetch(at: int, correlation: int, *outer: str, size: int = 800) -> list[Event]:
    return read(at, correlation, *outer, "aten::to", "aten::_to_copy", "aten::copy_", size=size)


def send(at: int, correlation: int, *outer: str, size: int = 800) -> list[Event]:
    return read(at, correlation, *outer, "aten::to", "aten::_to_copy", "aten::copy_", size=size, kind="HtoD")


def ops(at: int, *names: str) -> list[Event]:
    """Operators of 1 us, one every 2 us, that run nothing."""
    return [operator(at + 2_000 * number, 1_000, name) for number, name in enumerate(names)]


def backward_then_step(body: Iterable[Event], start: int) -> list[Event]:
    """`body` between the last node of the backward pass and the optimizer's step."""
    return [
        operator(start + 50_000, 10_000, "autograd::engine::evaluate_function: AddmmBackward0"),
        *body,
        annotation(start + 900_000, 20_000, "Optimizer.step#AdamW.step"),
    ]


def accused(rule: Rule, facts: Facts) -> list[Suspect]:
    """What a rule says; the evidence is sound: rows of steady steps, each once, and plain text."""
    found = list(rule.check(facts))
    for suspect in found:
        assert suspect.rows.dtype == np.int64
        assert len(np.unique(suspect.rows)) == len(suspect.rows) > 0
        assert (suspect.title + suspect.fix + suspect.reason).isascii()
    return found


def names(facts: Facts, rows: NDArray[np.int64]) -> set[str]:
    """The distinct names of rows."""
    return {facts.trace.names[code] for code in facts.trace.name[rows].tolist()}
