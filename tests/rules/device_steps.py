"""Training steps written by hand for the rules about transfers, memory and communication."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from reference.reader import trace_of
from written import Event, Number, annotation, call, event, kernel, mark, operator, parsed

from torchdiag.findings.rule import Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts

STEP = 1_000_000
"""Nanoseconds of a step."""
Body = Callable[[int, int], Iterable[Event]]
"""The events of a step, by its start and the first correlation that it may use."""


def facts(body: Body, count: int = 4, *more: Event, marks: bool = True) -> Facts:
    """A trace of `count` steps of one body, 1 ms each, with a kernel at the end of each step."""
    events = list(more)
    for number in range(count):
        start = number * STEP
        events += [mark(number, start, STEP)] if marks else []
        events += [*body(start, 1 + number * 1000), *launch(start + STEP - 60_000, number * 1000 + 999, 20_000)]
    return Facts.of(trace_of(parsed(events), {}))


def accused(rule: Rule, known: Facts) -> list[Suspect]:
    """What a rule says, each evidence checked to be in order: rows of the trace, in steady steps, each once."""
    found = list(rule.check(known))
    for suspect in found:
        assert suspect.rows.dtype == np.int64
        assert len(np.unique(suspect.rows)) == len(suspect.rows) > 0
        assert suspect.title.isascii() and suspect.fix.isascii() and suspect.reason.isascii()
    return found


def with_args(happened: Event, **args: Any) -> Event:
    """The event with more arguments; `_` in a name stands for a blank."""
    more = {name.replace("_", " "): numbers(value) for name, value in args.items()}
    return {**happened, "args": {**happened["args"], **more}}


def numbers(value: Any) -> Any:
    """Integers as the reader of written traces takes them."""
    if isinstance(value, list):
        return [numbers(item) for item in value]
    return Number(value) if isinstance(value, int) and not isinstance(value, bool) else value


def launch(
    at: int, correlation: int, took: int, *, stream: int = 7, name: str = "gemm", thread: int = 1
) -> list[Event]:
    """A launch of 4 us at `at` and its kernel 10 us later."""
    return [
        call(at, 4_000, correlation, thread=thread),
        kernel(at + 10_000, took, correlation, stream=stream, name=name),
    ]


def transfer(
    at: int, correlation: int, size: int, kind: str = "Pageable -> Device", *, waits: bool = True, stream: int = 7,
    took: int = 10_000, name: str = "aten::to", dims: list[Any] | None = None,
) -> list[Event]:  # fmt: skip
    """A copy by an operator at `at`: its call, the copy 4 us later, and a wait for it where `waits`."""
    way = "DtoH" if kind.startswith("Device") else "HtoD"
    length = 8_000 + took if waits else 4_000
    top = operator(at, length, name)
    args = {"device": 0, "stream": stream, "correlation": correlation, "bytes": size}
    events = [
        top if dims is None else with_args(top, Input_Dims=[dims]),
        call(at + 1_000, 2_000, correlation, name="cudaMemcpyAsync"),
        event("gpu_memcpy", f"Memcpy {way} ({kind})", at + 5_000, took, (0, stream), args),
    ]
    if waits:
        events.append(call(at + 4_000, took + 3_000, 500_000 + correlation, name="cudaStreamSynchronize"))
    return events


__all__ = ["STEP", "Event", "accused", "annotation", "facts", "launch", "operator", "transfer", "with_args"]
