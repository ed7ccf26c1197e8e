"""What was recorded beside the profiler: found in a trace, named, and part of no other figure."""

import runs
import written
from timeline.hand import charged, trace

from torchdiag.timeline import analysis, recorded
from torchdiag.timeline.result import Recorded

TRACKS = [
    runs.track(1_900_000_000, "Python exceptions, thread 1"),
    runs.track(1_900_000_001, "Python exceptions, thread 1 (2)"),
    runs.track(1_900_000_002, "C++ exceptions, thread 1"),
    runs.track(1_900_000_003, "Garbage collection, thread 1"),
]
AT = {"raised at": "train.py:12:step", "handled at": "train.py:14:step"}


def test_slices_are_summed_by_kind_name_and_place():
    found = recorded.in_trace(
        trace(
            *TRACKS,
            written.operator(0, 100),
            runs.recorded(10, 5, "KeyError", 1_900_000_000, **AT),
            runs.recorded(11, 3, "KeyError", 1_900_000_001, **AT),
            runs.recorded(20, 9, "KeyError", 1_900_000_000, **{"raised at": "data.py:3:load"}),
            runs.recorded(30, 40, "Python GC generation 2", 1_900_000_003, generation=2),
        )
    )
    assert found == (
        Recorded("exception", "KeyError", "data.py:3:load", "", "", 1, 9, 0),
        Recorded("exception", "KeyError", "train.py:12:step", "train.py:14:step", "", 2, 8, 0),
        Recorded("collection", "generation 2", "", "", "", 1, 40, 0),
    )


def test_a_trace_without_recordings_has_none():
    assert recorded.in_trace(trace(written.operator(0, 100))) == ()


def test_other_slices_of_the_category_are_passed_over():
    found = trace(runs.track(5, "steps of the exceptions pass"), runs.recorded(0, 9, "step 0", 5))
    assert recorded.in_trace(found) == ()


def test_an_exception_belongs_to_the_innermost_operator_around_it():
    found = recorded.in_trace(
        trace(
            *TRACKS,
            written.operator(0, 1000, "aten::linear"),
            written.operator(100, 500, "aten::mm"),
            written.operator(100, 500, "aten::other", thread=2),
            runs.recorded(200, 5, "c10::Error", 1_900_000_002, **{"thrown in": "at::mm()"}),
        )
    )
    assert found == (Recorded("throw", "c10::Error", "at::mm()", "", "aten::mm", 1, 5, 0),)


def test_outside_of_all_it_belongs_to_the_operator_that_follows_soon():
    events = [
        written.operator(0, 10, "aten::before"),
        written.operator(500, 10, "quantized::linear"),
        written.operator(5_000_000, 10, "aten::late"),
        runs.recorded(300, 5, "near", 1_900_000_002),
        runs.recorded(3_000_000, 5, "far", 1_900_000_002),
    ]
    assert recorded.throwing_operators(trace(*TRACKS, *events)) == {"near": "quantized::linear"}


def test_many_operators_are_counted_not_listed():
    events = []
    for number in range(5):
        events += [written.operator(number * 10, 9, f"op{number}")] * 1
        events += [runs.recorded(number * 10 + 1, 1, "E", 1_900_000_002)]
    assert recorded.throwing_operators(trace(*TRACKS, *events)) == {"E": "op0, op1, op2 and 2 more"}


def test_the_time_of_recordings_is_not_counted_again():
    events = [
        written.mark(0, 0, 100),
        written.operator(10, 20),
        written.call(20, 5, 1),
        written.kernel(40, 20, 1),
    ]
    beside = [*TRACKS, runs.recorded(0, 90, "KeyError", 1_900_000_000), runs.recorded(5, 90, "E", 1_900_000_002)]
    assert charged(*events, *beside) == charged(*events)
    plain, with_them = (analysis.analyse(trace(*found)) for found in (events, [*events, *beside]))
    assert (plain.devices, plain.host, plain.steps) == (with_them.devices, with_them.host, with_them.steps)


def test_of_a_run_its_counts_are_told_over_its_steps():
    found = recorded.of_run(runs.recorder(), {"c10::Error": "aten::mm"})
    assert found == (
        Recorded("exception", "KeyError", "/home/me/train.py:12:step", "/home/me/train.py:14:step", "", 3, 30_000, 3),
        Recorded("throw", "c10::Error", "/lib/libtorch_cpu.so", "", "aten::mm", 6, 120_000, 3),
        Recorded("collection", "generation 2", "", "", "", 1, 9_000_000, 3),
        Recorded("warning", "UserWarning", "/home/me/model.py:7:forward", "", "", 3, 0, 3),
    )
