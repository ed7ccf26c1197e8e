"""Each doubt about a trace is told, with its numbers; a healthy trace has none."""

from dataclasses import replace

import pytest
from hand import trace
from written import call, copy, event, frame, kernel, mark, operator, overhead

from torchdiag.timeline.activity import collect
from torchdiag.timeline.health import health
from torchdiag.timeline.marks import marks
from torchdiag.timeline.steps import steps
from torchdiag.trace.quality import Quality


def notes(*events, overruns=0, damage=(), **top_level):
    data = replace(trace(*events, **top_level), quality=tuple(Quality(code, code) for code in damage))
    activities, _ = collect(data)
    table, _ = steps(data, activities, marks(data))
    return {note.code: note for note in health(data, activities, table, overruns=overruns)}


def shaped(item):
    item["args"]["Input Dims"] = [[2, 3]]
    return item


HEALTHY = [
    mark(1, 0, 1000),
    mark(2, 1000, 1000),
    frame(0, 2000),
    shaped(operator(10, 90)),
    call(20, 5, 1),
    kernel(40, 100, 1),
    shaped(operator(1010, 90)),
    call(1020, 5, 2),
    kernel(1040, 100, 2),
]


def test_a_healthy_trace_has_no_notes():
    assert notes(*HEALTHY) == {}


def test_missing_stacks_and_shapes_are_facts_worth_a_line():
    assert set(notes(mark(1, 0, 100), operator(0, 50), call(5, 5, 1), kernel(20, 5, 1))) == {"no-stacks", "no-shapes"}


def test_a_call_stack_is_a_stack():
    item = shaped(operator(0, 50))
    item["args"]["Call stack"] = "train.py(3): <module>"
    assert notes(item, call(5, 5, 1), kernel(20, 5, 1)) == {}


def test_unlinked_work_is_told_by_number_and_time():
    note = notes(*HEALTHY, kernel(300, 200))["unlinked-gpu-work"]
    assert note.count == 1
    assert "1 of 3 GPU activities (33.3%, 50.0% of their time)" in note.message


def test_correlation_zero_is_told():
    assert notes(*HEALTHY, kernel(300, 200, 0))["correlation-zero"].count == 1


def test_launches_without_work_name_the_step():
    lost = [call(1200 + 10 * number, 5, 100 + number) for number in range(3)]
    note = notes(*HEALTHY, *lost)["launches-without-work"]
    assert note.count == 3
    assert "1 of 2 steps, ProfilerStep#2 25.0%" in note.message


def test_launches_without_work_are_told_of_a_trace_without_steps_too():
    events = [call(10, 5, 1), kernel(20, 5, 1), call(30, 5, 2)]
    note = notes(*events)["launches-without-work"]
    assert (note.count, "50.0%" in note.message) == (1, True)


def test_two_lost_of_a_hundred_are_forgiven():
    events = [item for n in range(100) for item in (call(10 * n, 5, n + 1), kernel(10 * n + 5, 5, n + 1))]
    assert "launches-without-work" not in notes(*events[:-4], events[-4], events[-2])


def test_graph_replays_without_kernels():
    note = notes(*HEALTHY, call(300, 20, 9, name="cudaGraphLaunch"))["graph-replay-without-kernels"]
    assert note.count == 1


def in_graph(item, number):
    item["args"]["graph id"] = number
    return item


def test_graph_replays_that_lack_kernels_of_their_fullest():
    replays = []
    for number, (start, count) in enumerate([(300, 3), (400, 2), (500, 3)]):
        replays.append(call(start, 5, 20 + number, name="cudaGraphLaunch"))
        replays += [in_graph(kernel(start + 10 + 10 * n, 5, 20 + number), 7) for n in range(count)]
    note = notes(*HEALTHY, *replays)["graph-replay-incomplete"]
    assert (note.count, "1 of 3 graph replays lack 1 kernels" in note.message) == (1, True)


def test_different_graphs_may_hold_different_numbers_of_kernels():
    replays = [
        call(300, 5, 20, name="cudaGraphLaunch"),
        in_graph(kernel(310, 5, 20), 7),
        in_graph(kernel(320, 5, 20), 7),
        call(400, 5, 21, name="cudaGraphLaunch"),
        in_graph(kernel(410, 5, 21), 8),
    ]
    assert notes(*HEALTHY, *replays) == {}


def test_overruns_are_passed_on():
    assert notes(*HEALTHY, overruns=3)["kernel-overruns-successor"].count == 3


def test_work_that_was_not_recorded():
    events = [mark(1, 0, 100), frame(0, 100), shaped(operator(0, 50)), call(5, 5, 1), call(15, 5, 2)]
    note = notes(*events, deviceProperties=[{"id": 0}])["gpu-not-recorded"]
    assert (note.count, "2 launch calls" in note.message) == (2, True)


@pytest.mark.parametrize(
    ("top_level", "events", "reason"),
    [
        ({}, [], "ProfilerActivity.CUDA"),
        ({"deviceProperties": [{"id": 0}]}, [], "another profiler"),
        ({"deviceProperties": [{"id": 0}], "cupti_version": 22}, [], "warm-up"),
        ({"deviceProperties": [{"id": 0}], "host": "5.15.90-microsoft-standard-WSL2"}, [], "WSL"),
        ({"deviceProperties": [{"id": 0}], "traceName": "C:\\\\runs\\\\a.json"}, [], "Windows"),
        ({"deviceProperties": [{"id": 0}]}, [event("cuda_profiler_range", "x", 0, 5, (0, 0), {})], "profiler_metrics"),
    ],
)
def test_the_likely_reason_for_it(top_level, events, reason):
    assert reason in notes(operator(0, 50), call(5, 5, 1), *events, **top_level)["gpu-not-recorded"].message


@pytest.mark.parametrize("damage", ["truncated-json", "truncated-gzip", "bad-gzip"])
def test_a_cut_explains_missing_work_better_than_the_profiler_does(damage):
    message = notes(operator(0, 50), call(5, 5, 1), damage=[damage])["gpu-not-recorded"].message
    assert "cut short" in message
    assert "Activity" not in message
    assert "CUPTI" not in message


def test_a_trace_of_the_host_alone():
    assert "The trace has no GPU work" in notes(operator(0, 50))["host-only"].message
    assert "What is left of the trace" in notes(operator(0, 50), damage=["truncated-json"])["host-only"].message


def test_several_ranks():
    other = operator(10, 5)
    other["pid"] = 200
    note = notes(*HEALTHY, shaped(other))["several-ranks"]
    assert (note.count, "100, 200" in note.message) == (2, True)


def test_events_far_away():
    others = [shaped(operator(2100 + 10 * number, 5)) for number in range(30)]
    note = notes(*HEALTHY, *others, kernel(10_000_000, 5, 1))["clock-outliers"]
    assert note.count == 1


def test_repeated_events():
    assert notes(*HEALTHY, HEALTHY[-1], HEALTHY[3])["duplicate-events"].count == 2


def test_events_that_differ_by_an_id_alone_are_no_repetition():
    one, other = shaped(operator(300, 5)), shaped(operator(300, 5))
    other["args"]["External id"] = 7
    assert notes(*HEALTHY, one, other) == {}


def test_the_profilers_own_work():
    note = notes(*HEALTHY, overhead(200, 300), overhead(400, 300))["profiler-overhead"]
    assert "25.0% of the time" in note.message
    assert "profiler-overhead" not in notes(*HEALTHY, overhead(200, 10))


def test_partial_steps():
    full = [mark(n, 1000 * n, 1000) for n in range(4)] + [mark(4, 4000, 100)]
    work = []
    for n in range(4):
        work += [
            item
            for k in range(5)
            for item in (call(1000 * n + k, 1, 10 * n + k + 1), kernel(1000 * n + 90 + k, 1, 10 * n + k + 1))
        ]
    note = notes(*full, *work, call(4001, 1, 99), kernel(4050, 1, 99))["partial-steps"]
    assert (note.count, "ProfilerStep#4 is recorded only in part; 4 of 5 steps are whole" in note.message) == (1, True)


def test_many_frames_slow_the_host():
    frames = [frame(10 * number, 5) for number in range(1000)]
    assert notes(*HEALTHY, *frames)["stacks-slow-the-host"].count == 1001


def test_copies_are_linked_like_kernels():
    assert notes(*HEALTHY, call(300, 5, 8, name="cudaMemcpyAsync"), copy(310, 5, 8)) == {}
