"""Calls that take longer than usual, and what torch.compile did."""

import numpy as np
import pytest
from hand import trace
from written import Event, annotation, mark, operator

from torchdiag.timeline.facts.compilation import Compilation, compilation
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.slow_calls import SlowCalls, slow_calls
from torchdiag.trace.vocabulary import Kind

MS = 1_000_000
STEP = 100 * MS
CONV = "aten::cudnn_convolution"
LOOKUP = "TorchDynamo Cache Lookup"


def facts(*steps: list[Event]) -> Facts:
    events: list[Event] = []
    for number, step in enumerate(steps):
        events += [mark(number, number * STEP, STEP), *step]
    return Facts.of(trace(*events))


def conv(step: int, at_ms: int, took_ms: float, length: int, name: str = CONV) -> Event:
    item = operator(step * STEP + at_ms * MS, round(took_ms * MS), name)
    return {**item, "args": {"Input Dims": [[1, 3, length, length]]}}


def slow(*calls: Event, steps: int = 3, ratio: float = 5.0, least_ns: int = 4 * MS) -> list[SlowCalls]:
    marks = [mark(number, number * STEP, STEP) for number in range(steps)]
    return slow_calls(Facts.of(trace(*marks, *calls)), frozenset({CONV, "aten::bmm"}), ratio, least_ns)


def test_calls_far_above_the_usual_are_slow_and_new_shapes_are_told():
    usual = [conv(step, 10 * number, 1, 224) for step in range(3) for number in range(4)]
    (found,) = slow(*usual, conv(1, 60, 20, 256), conv(2, 60, 20, 224))
    assert len(found.slow) == 2 and found.new_shape.tolist() == [True, False]
    assert (found.usual_ns, found.calls, found.shapes) == (MS, 14, 2)


@pytest.mark.parametrize(("took_ms", "count"), [(5, 1), (4.9, 0)])
def test_slow_is_so_many_times_the_usual(took_ms: float, count: int):
    usual = [conv(step, 10 * number, 1, 224) for step in range(3) for number in range(4)]
    (found,) = slow(*usual, conv(1, 60, took_ms, 256))
    assert len(found.slow) == count


def test_short_calls_are_not_slow_whatever_the_ratio():
    usual = [conv(step, 10 * number, 0.1, 224) for step in range(3) for number in range(4)]
    (found,) = slow(*usual, conv(1, 60, 3.9, 256))
    assert len(found.slow) == 0


def test_operators_are_compared_with_their_own_kind():
    (one, other) = slow(conv(0, 0, 1, 8), conv(0, 10, 1, 8), conv(0, 20, 9, 9, "aten::bmm"))
    assert (one.usual_ns, other.usual_ns) == (MS, 9 * MS)
    assert len(one.slow) == len(other.slow) == 0


def test_other_operators_and_calls_outside_of_steps_do_not_count():
    assert slow(conv(0, 0, 9, 8, "aten::mm")) == []
    assert slow(conv(7, 0, 9, 8)) == []
    assert slow() == []


def compiled(*steps: list[Event]) -> tuple[Facts, Compilation]:
    known = facts(*steps)
    return known, known.get(compilation)


def region(at: int, name: str, length: int = MS) -> list[Event]:
    return [operator(at, MS // 10, LOOKUP), operator(at + MS // 2, length, f"Torch-Compiled Region: {name}")]


def test_regions_tell_their_frame_and_version():
    _, found = compiled([*region(10 * MS, "3/1"), *region(20 * MS, "4/0")])
    assert (found.frame.tolist(), found.version.tolist()) == ([3, 4], [1, 0])
    assert found.runs.tolist() == [True, True] and len(found.compiles) == 0


def test_a_look_up_after_which_no_region_begins_runs_the_function_itself():
    eager = [operator(10 * MS, MS // 10, LOOKUP), operator(20 * MS, 40 * MS, "aten::mm")]
    _, found = compiled([*eager, *region(70 * MS, "0/0")])
    assert found.runs.tolist() == [False, True]


def test_a_look_up_may_be_an_annotation():
    _, found = compiled([annotation(10 * MS, MS // 10, LOOKUP), *region(70 * MS, "0/0")])
    assert len(found.lookups) == 2 and found.runs.tolist() == [False, True]


def test_nested_phases_of_one_compilation_are_one():
    span = [
        operator(10 * MS, 50 * MS, "entire_frame_compile (dynamo_timed)"),
        operator(12 * MS, 40 * MS, "_compile.compile_inner (dynamo_timed)"),
        operator(13 * MS, 30 * MS, "compile_attempt_0 (dynamo_timed)"),
    ]
    known, found = compiled([operator(9 * MS, MS // 10, LOOKUP), *span])
    assert [known.trace.names[code] for code in known.trace.name[found.compiles]] == [span[0]["name"]]
    assert found.attempted.tolist() == [True] and found.runs.tolist() == [True]


def test_a_compilation_that_hits_the_limit_attempts_nothing():
    _, found = compiled([operator(10 * MS, MS, "_compile.compile_inner (dynamo_timed)")])
    assert found.attempted.tolist() == [False]


@pytest.mark.parametrize("name", ["Torch-Compiled Region: x/y", "Torch-Compiled Region", "my compile_attempt_0"])
def test_other_names_are_nothing_of_the_compiler(name: str):
    known, found = compiled([operator(10 * MS, MS, name)])
    assert len(found.regions) == len(found.compiles) == len(found.lookups) == 0
    assert np.count_nonzero(known.trace.kind == Kind.OPERATOR) == 1
