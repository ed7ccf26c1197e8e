"""Runs written by hand: results, and folders that hold them with traces of their own."""

import gzip
from typing import Any

import msgspec
import written
from written import Event

from torchdiag.history import run_result
from torchdiag.history.profile_options import ProfileOptions
from torchdiag.history.run_result import (
    CollectionSum,
    Environment,
    ExceptionPlace,
    MemoryResult,
    PassResult,
    RecorderResult,
    RunResult,
    ThrowPlace,
    WarningPlace,
)

MS = 1_000_000
CATEGORY = "torchdiag"


def options(**changes: Any) -> ProfileOptions:
    return msgspec.structs.replace(ProfileOptions(target="resnet18", target_kind="model"), **changes)


def recorder(**changes: Any) -> RecorderResult:
    """3 steps; in each, one KeyError (10 us), two C++ exceptions (20 us each), a warning; one collection in all."""
    found = RecorderResult(
        steps=3,
        mechanism="sys.settrace",
        exceptions=(
            ExceptionPlace(
                type="KeyError",
                raised_at="/home/me/train.py:12:step",
                handled_at="/home/me/train.py:14:step",
                outcome="handled",
                count=3,
                total_ns=30_000,
                max_ns=11_000,
            ),
        ),
        exceptions_per_step=(1, 1, 1),
        throws=(
            ThrowPlace(
                type="c10::Error", library="/lib/libtorch_cpu.so", symbol="", count=6, caught=6, total_ns=120_000
            ),
        ),
        throws_per_step=(2, 2, 2),
        collections=(CollectionSum(generation=2, count=1, total_ns=9 * MS, longest_ns=9 * MS, collected=4),),
        collections_per_step=(0, 1, 0),
        warnings=(WarningPlace(category="UserWarning", issued_at="/home/me/model.py:7:forward", count=3, shown=1),),
        warnings_per_step=(1, 1, 1),
        exception_cost_ns=2_000.0,
        call_cost_ns=100.0,
    )
    return msgspec.structs.replace(found, **changes)


def result(**changes: Any) -> RunResult:
    """A complete run: 100 ms a step, 120 ms recorded lightly, 200 ms with stacks."""
    found = RunResult(
        torchdiag="0.1.0",
        created="2026-01-02T03:04:05+00:00",
        status="complete",
        options=options(),
        environment=Environment(python="3.11.7", platform="Linux", torch="2.14.1", device="cpu", cpu="EPYC", threads=2),
        batch_size=2,
        size="tiny",
        steps_found_by="model",
        passes=(
            PassResult(name="warm-up", step_ns=(300 * MS, 110 * MS, 105 * MS)),
            PassResult(name="timed", step_ns=tuple(ms * MS for ms in (98, 99, 100, 101, 102))),
            PassResult(name="light", step_ns=(119 * MS, 120 * MS, 121 * MS), trace="trace.json.gz", recorded=3),
            PassResult(name="detailed", step_ns=(200 * MS, 200 * MS), trace="detail.json.gz", recorded=2),
            PassResult(name="exceptions", step_ns=(150 * MS,) * 3),
        ),
        memory=MemoryResult(peak_rss_bytes=800_000_000),
        recorder=recorder(),
    )
    return msgspec.structs.replace(found, **changes)


def light_events() -> list[Event]:
    """Two steps of 100 us: in each an operator at 20..60 and nothing else, so that 60 us are Python's."""
    events: list[Event] = []
    for number in range(2):
        at = 100_000 * number
        events += [written.mark(number, at, 100_000), written.operator(at + 20_000, 40_000, "aten::mm")]
    return events


def detailed_events() -> list[Event]:
    """One step of 300 us within a frame; an operator at 50..150, a frame of a helper at 150..250."""
    return [
        written.mark(0, 0, 300_000),
        written.frame(0, 300_000, "train.py(88): step"),
        written.operator(50_000, 100_000, "aten::mm"),
        written.frame(150_000, 100_000, "data.py(5): augment"),
    ]


def track(number: int, name: str) -> Event:
    return {"ph": "M", "name": "thread_name", "pid": 100, "tid": number, "args": {"name": name}}


def recorded(start: int, length: int, name: str, number: int, **args: Any) -> Event:
    """A slice as `capture/tracks.py` writes them."""
    return written.event(CATEGORY, name, start, length, (100, number), args)


def write_trace(path: Any, events: list[Event]) -> None:
    path.write_bytes(gzip.compress(written.json_text(events, "kineto").encode()))


def folder(path: Any, *, light: Any = None, detail: Any = None, **changes: Any) -> Any:
    """A run's folder; a trace that is False is left out."""
    path.mkdir(parents=True, exist_ok=True)
    run_result.write(result(**changes), path / "result.json")
    if light is not False:
        write_trace(path / "trace.json.gz", light_events() if light is None else light)
    if detail is not False:
        write_trace(path / "detail.json.gz", detailed_events() if detail is None else detail)
    (path / "output.log").write_text("epoch 1\n")
    return path
