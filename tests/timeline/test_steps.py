"""The step table, counted by hand."""

import numpy as np
from hand import trace
from written import annotation, call, copy, kernel, mark, operator

from torchdiag.timeline.activity import collect
from torchdiag.timeline.marks import marks
from torchdiag.timeline.steps import steps


def table(*events):
    data = trace(*events)
    return steps(data, collect(data)[0], marks(data))


def test_a_step_counts_what_begins_in_it():
    rows, source = table(
        mark(1, 0, 100),
        mark(2, 100, 100),
        call(10, 5, 1),
        call(20, 5, 2, name="cudaMemcpyAsync"),
        call(30, 60, name="cudaStreamSynchronize"),
        call(99, 5, 3),
        call(150, 5, 4, name="cudaMemcpy"),
        call(199, 5, 5, thread=2),
        kernel(20, 10, 1),
        copy(40, 20, 2),
        kernel(120, 30, 3),
        copy(160, 10, 4),
        kernel(210, 10, 5),
    )
    assert source == "marks"
    one, two = rows
    assert (one.name, one.start_ns, one.end_ns) == ("ProfilerStep#1", 0, 100)
    assert (one.kernels, one.launches, one.syncs, one.copies, one.copied_bytes) == (2, 2, 1, 1, 4096)
    # cudaMemcpy copies and waits: it is a synchronising call.
    assert (two.kernels, two.launches, two.syncs, two.copies, two.copied_bytes) == (1, 1, 1, 1, 4096)
    # Busy by the clock: 20..30 and 40..60; 120..150 and 160..170.
    assert (one.gpu_busy, two.gpu_busy) == (0.3, 0.4)


def test_work_without_a_call_counts_at_its_own_time():
    rows, _ = table(mark(1, 0, 100), mark(2, 100, 100), kernel(90, 20), kernel(110, 5))
    assert [row.kernels for row in rows] == [1, 1]
    assert [row.gpu_busy for row in rows] == [0.1, 0.15]


def test_overlapping_work_is_busy_once_and_devices_are_averaged():
    rows, _ = table(
        mark(1, 0, 100), kernel(0, 50), kernel(20, 40, stream=8), kernel(0, 20, device=1), kernel(300, 20, device=1)
    )
    assert rows[0].gpu_busy == (0.6 + 0.2) / 2


def test_a_trace_without_a_device_has_no_share():
    rows, source = table(mark(1, 0, 100), operator(0, 50))
    assert (rows[0].gpu_busy, rows[0].kernels, source) == (None, 0, "marks")


def test_steps_are_in_time_order():
    rows, _ = table(mark(2, 100, 50), mark(1, 0, 100))
    assert [row.name for row in rows] == ["ProfilerStep#1", "ProfilerStep#2"]


def test_without_marks_and_period_there_are_no_steps():
    assert table(call(0, 5, 1), kernel(10, 5, 1)) == ((), "none")


def test_optimizer_steps_stand_in_for_marks():
    events = []
    for number in range(4):
        start = 100 * number
        events += [call(start, 5, 2 * number + 1), kernel(start + 10, 5, 2 * number + 1)]
        events += [annotation(start + 50, 20, "Optimizer.step#SGD.step")]
        events += [call(start + 55, 5, 2 * number + 2), kernel(start + 62, 5, 2 * number + 2, name="sgd")]
    rows, source = table(*events)
    assert source == "period"
    assert [(row.name, row.start_ns, row.end_ns) for row in rows] == [
        ("period#0", 0, 70),
        ("period#1", 70, 170),
        ("period#2", 170, 270),
        ("period#3", 270, 370),
    ]
    assert [row.kernels for row in rows] == [2, 2, 2, 2]


def test_selected_marks_are_the_only_steps():
    data = trace(mark(1, 0, 100), mark(2, 100, 100), kernel(10, 5))
    rows, _ = steps(data, collect(data)[0], np.array([1]))
    assert [row.name for row in rows] == ["ProfilerStep#2"]
