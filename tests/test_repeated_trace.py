"""The large traces of the benchmark: many copies of a small one, as if the job had gone on."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from reference.partition import partition
from reference.reader import parse

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "traces" / "training_step.json.gz"
COPIES = 3


def benchmark_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("repeat_trace", ROOT / "benchmarks" / "repeat_trace.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["repeat_trace"] = module
    spec.loader.exec_module(module)
    return module


repeat_trace = benchmark_module()


@pytest.fixture(scope="module")
def once() -> str:
    return repeat_trace.read(SOURCE).decode()


@pytest.fixture(scope="module")
def repeated(once: str) -> str:
    return b"".join(repeat_trace.template_of(once.encode()).copies(COPIES)).decode()


def completed(text: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == "X"]


def test_one_copy_is_the_source_itself(once: str) -> None:
    assert b"".join(repeat_trace.template_of(once.encode()).copies(1)).decode() == once


def test_copies_hold_the_same_work_with_marks_numbered_on(once: str, repeated: str) -> None:
    names, more = ([event["name"] for event in completed(text)] for text in (once, repeated))
    marks = [name for name in more if name.startswith("ProfilerStep#")]
    assert marks == [f"ProfilerStep#{number}" for number in range(2, 2 + 4 * COPIES)]
    assert sorted(name for name in more if name not in marks) == sorted(
        name for name in names * COPIES if not name.startswith("ProfilerStep#")
    )


@pytest.mark.parametrize("key", ["correlation", "External id", "Python id", "Ev Idx"])
def test_no_copy_shares_an_id_with_another(key: str, once: str, repeated: str) -> None:
    first, every = ({event["args"].get(key) for event in completed(text)} - {None} for text in (once, repeated))
    assert len(every) == COPIES * len(first)


def test_the_gpu_does_as_much_in_every_copy_and_all_of_it_is_still_linked(once: str, repeated: str) -> None:
    (alone,), (together,) = (partition(parse(text)[0]).values() for text in (once, repeated))
    for state in ("compute", "communication", "memory", "transfer"):
        assert together.states[state] == COPIES * alone.states[state]
    for cause in ("dataloader", "sync", "copy_call", "launch"):
        assert together.idle[cause] == COPIES * alone.idle[cause]
    assert together.idle["unattributed"] == 0


def test_sizes_are_read_with_their_units() -> None:
    assert repeat_trace.size_of("1GB") == 1_000_000_000
    assert repeat_trace.size_of("0.25gb") == 250_000_000
    assert repeat_trace.size_of("15 MB") == 15_000_000
    assert repeat_trace.size_of("4096") == 4096
    with pytest.raises(ValueError, match="not a size"):
        repeat_trace.size_of("many")
