"""What-ifs counted by hand. All times are microseconds; a row is the place of its event in the trace."""

import pytest
from whatif import US, WhatIf, copy, frame, kernel, launch, mark, op, rows, sync
from written import Event, event

from torchdiag.timeline.changes import Change


def half(since: float, first: int) -> list:
    """Five launches of 10 each, and kernels of 20 that begin 5 after the first launch call and follow one another."""
    launches = [launch(since + 10 * i, 10, first + i) for i in range(5)]
    return launches + [kernel(since + 15 + 20 * i, 20, first + i) for i in range(5)]


def two_halves(*more) -> WhatIf:
    """The device is done at 115, the host waits to 117, thinks to 167, launches again to 217, and waits to 284."""
    return WhatIf(mark(0, 0, 284), *half(0, 1), sync(50, 117), *half(167, 11), sync(217, 284), *more)


def test_without_its_first_wait_the_host_runs_ahead_and_the_step_is_bound_by_the_device():
    """The host thinks from 50 to 100 and launches to 150; the kernels follow one another from 15 to 215."""
    told = two_halves()
    assert told.steps() == [284]
    assert told.steps(Change(unblocked=rows(11))) == [217]
    assert told.idle() == [84]
    assert told.idle(Change(unblocked=rows(11))) == [17]


def test_without_both_waits_the_step_ends_with_the_device():
    assert two_halves().steps(Change(unblocked=rows(11, 22))) == [215]


def test_the_last_wait_alone_hides_nothing():
    """Behind it comes only the end of the step, which the device's work belongs to."""
    assert two_halves().steps(Change(unblocked=rows(22))) == [282]


def test_removing_one_of_two_waits_moves_the_wait_to_the_other():
    """The second call finds the device done and costs 2; without the first it waits as long as that did."""
    told = WhatIf(mark(0, 0, 169), *half(0, 1), sync(50, 117), sync(117, 119), op(119, 169))
    assert told.steps() == [169]
    assert told.steps(Change(unblocked=rows(11))) == [167]
    assert told.steps(Change(unblocked=rows(12))) == [167]
    assert told.steps(Change(unblocked=rows(11, 12))) == [115]


def test_a_wait_in_a_shortened_frame_is_a_wait_still():
    """The frame's own 50 go, and the 2 that the waiting call takes to return stay with the wait."""
    told = WhatIf(mark(0, 0, 217), *half(0, 1), frame(40, 167), sync(50, 117), launch(167, 10, 6), kernel(182, 35, 6))
    assert told.steps() == [217]
    assert told.steps(Change(shortened=rows(11))) == [117 + 10 + 5 + 35]
    assert told.steps(Change(shortened=rows(11), unblocked=rows(12))) == [115 + 35]


def test_a_wait_for_nothing_known_stays_in_a_shortened_frame():
    """The first 10 of such a call may be its own doing."""
    told = WhatIf(mark(0, 0, 200), frame(10, 190), sync(20, 170, "cudaDeviceSynchronize"))
    assert told.steps(Change(shortened=rows(1))) == [200 - 180 + 140]
    assert told.steps(Change(unblocked=rows(2))) == [50]


def launch_bound(length: float) -> WhatIf:
    """Every 50 an operator of 40 and a launch of 10, whose kernel begins 5 later."""
    events = [mark(0, 0, 250)]
    for i in range(5):
        events += [op(50 * i, 50 * i + 40), launch(50 * i + 40, 10, i + 1), kernel(50 * i + 55, length, i + 1)]
    return WhatIf(*events)


def test_less_framework_time_shortens_a_step_bound_by_launches():
    told = launch_bound(10)
    operators = told.all("aten::mm")
    assert told.steps() == [265]
    assert told.steps(Change(shortened=operators, host_scale=0.5)) == [5 * 30 + 5 + 10]
    assert told.steps(Change(shortened=operators, host_scale=0.25)) == [5 * 20 + 5 + 10]


def test_until_it_is_bound_by_the_device():
    """Kernels of 30 that never followed one another at once are taken to need 1 in between."""
    told = launch_bound(30)
    operators = told.all("aten::mm")
    assert told.steps() == [285]
    assert told.steps(Change(shortened=operators)) == [15 + 5 * 30 + 4 * 1]
    assert told.steps(Change(shortened=operators, host_scale=0.5)) == [35 + 5 * 30 + 4 * 1]


def test_overlapping_accusations_are_taken_once():
    """An operator, a frame around it that crosses the next operator, and both together."""
    told = WhatIf(mark(0, 0, 100), frame(10, 60), op(20, 50), op(40, 80))
    assert told.steps(Change(shortened=rows(2))) == [70]
    assert told.steps(Change(shortened=rows(1, 2))) == [50]
    assert told.steps(Change(shortened=rows(1, 2, 3, 3))) == [30]
    assert told.steps(Change(shortened=rows(1), host_scale=0.5), Change(shortened=rows(3))) == [100 - 15 - 40]


def test_a_removed_kernel_takes_its_launch_along():
    told = launch_bound(10)
    assert told.steps(Change(removed=rows(9))) == [255]


def test_a_copy_that_no_longer_blocks_costs_a_submission():
    """The call lasted from 10 to 110, for a copy from 15 to 105; then 50 of Python and a launch of 5."""
    told = WhatIf(
        mark(0, 0, 200),
        launch(10, 100, 1, "cudaMemcpyAsync"),
        copy(15, 90, 1),
        op(110, 160),
        launch(160, 5, 2),
        kernel(170, 100, 2),
    )
    assert told.steps() == [270]
    unblocked = Change(unblocked=rows(1))
    assert told.steps(unblocked) == [105 + 1 + 100]
    assert told.steps(unblocked, Change(removed=rows(2))) == [50 + 5 + 5 + 100 + 10]


@pytest.mark.parametrize(("row", "expected"), [(3, 112), (4, 62)])
def test_a_faster_kernel_counts_where_nothing_hides_it(row, expected):
    told = WhatIf(
        mark(0, 0, 112),
        launch(0, 5, 1),
        launch(5, 5, 2),
        kernel(20, 40, 2, stream=20),
        kernel(10, 100, 1),
        sync(30, 112, "cudaDeviceSynchronize"),
    )
    assert told.steps(Change(scaled=rows(row), device_scale=0.5)) == [expected]


def test_a_data_loader_that_takes_no_time():
    name = "torch/utils/data/dataloader.py(703): __next__"
    told = WhatIf(mark(0, 0, 130), frame(0, 100, name), launch(100, 10, 1), kernel(115, 20, 1))
    assert told.steps(Change(shortened=rows(1))) == [35]


def backward_pass() -> WhatIf:
    """Thread 1 launches to 10 and calls into the engine at 20; thread 2 runs four operators from 30 to 210, each of
    which launches in its last 10; thread 1 goes on at 220 with an operator and a launch."""
    events = [mark(0, 0, 240), launch(0, 10, 1), kernel(15, 5, 1), frame(20, 220, "engine.py(9): run_backward")]
    for i in range(4):
        since = 30 + 45 * i
        events += [
            op(since, since + 45, "MmBackward0", thread=2),
            launch(since + 35, 10, 2 + i, thread=2),
            kernel(since + 50, 10, 2 + i),
        ]
    return WhatIf(*events, op(220, 230), launch(230, 10, 9), kernel(245, 10, 9))


def test_the_driver_waits_for_the_thread_of_the_backward_pass():
    """Its kernels of 10 begin at 35 and need 1 in between; the driver goes on at 40 and launches the last from 50."""
    told = backward_pass()
    assert told.steps() == [255]
    assert told.steps(Change(shortened=told.all("MmBackward0"))) == [35 + 4 * 10 + 4 * 1 + 10]
    assert told.steps(Change(shortened=told.all("MmBackward0"), host_scale=0.5)) == [255 - 90]


def test_the_frame_that_waits_for_the_backward_pass_has_only_its_ends_to_give():
    assert backward_pass().steps(Change(shortened=rows(3))) == [255 - 20]


def test_a_read_that_is_still_needed_waits_instead():
    """Without the wait the operator runs from 10 to 30; the copy follows the kernel that ends at 115, as before."""
    told = WhatIf(
        mark(0, 0, 152),
        launch(0, 10, 1),
        kernel(15, 100, 1),
        sync(10, 117),
        op(117, 137),
        launch(137, 15, 2, "cudaMemcpy"),
        copy(142, 8, 2, "DtoH"),
    )
    assert told.steps(Change(unblocked=rows(3))) == [115 + 1 + 8 + 2]
    assert told.steps(Change(unblocked=rows(3, 5))) == [115 + 1 + 8]


def full_queue() -> WhatIf:
    """Twenty kernels of 100 on a queue of eight: a launch call takes 5, or returns 1 after the end of the kernel eight
    before its own. The second step begins when all are launched."""
    host, ends, events = 0.0, [], []
    for i in range(20):
        begun, host = host, max(host + 5, ends[i - 8] + 1 if i >= 8 else 0)
        start = max(host + 5, ends[-1] if ends else 0)
        ends.append(start + 100)
        events += [launch(begun, host - begun, i + 1), kernel(start, 100, i + 1)]
    return WhatIf(mark(0, 0, host), mark(1, host, host + 50), *events)


def test_a_launch_call_that_waits_for_a_place_in_the_queue_gives_way():
    """The twentieth call returns after the twelfth kernel, which ends at 10 + 12 * 100, or at half of that."""
    told = full_queue()
    assert told.steps()[0] == 10 + 12 * 100 + 1
    faster = told.steps(Change(scaled=told.all("gemm"), device_scale=0.5))
    assert faster[0] == 10 + 12 * 50 + 1
    assert sum(faster) == 10 + 20 * 50


def test_steps_that_no_longer_wait_take_the_device_time_in_all():
    """Three steps of one kernel of 100 that is launched in 10, begins after 5 and is waited for to 2 after its end."""
    events = []
    for i in range(3):
        since = 117 * i
        events += [mark(i, since, since + 117), launch(since, 10, i + 1), kernel(since + 15, 100, i + 1)]
        events += [sync(since + 10, since + 117)]
    told = WhatIf(*events)
    assert told.steps() == [117, 117, 117]
    # The host is 10 a step, the last step lasts until the device is done; 1 lies between two kernels.
    unblocked = Change(unblocked=told.all("cudaStreamSynchronize"))
    assert told.steps(unblocked) == [10, 10, 15 + 3 * 100 + 2 * 1 - 20]
    # The device does a step's work every 101; the first is over when its kernel is.
    assert told.paces() == [117, 117, 117]
    assert told.paces(unblocked) == [115, 101, 101]


def test_threads_alone_where_there_is_no_device():
    told = WhatIf(mark(0, 0, 100), mark(1, 100, 250), op(20, 70), op(120, 150), op(60, 90, thread=2))
    assert told.steps(Change(shortened=rows(2, 4), host_scale=0.5)) == [75, 150]
    assert told.steps(Change(shortened=rows(2, 3))) == [50, 120]


def test_without_steps_the_window_is_one():
    told = WhatIf(launch(0, 10, 1), kernel(15, 10, 1), op(10, 100), launch(100, 10, 2), kernel(115, 10, 2))
    assert told.steps() == [110]
    assert told.steps(Change(shortened=rows(2))) == [110 - 85]  # what of it lies before the first kernel is not changed


def test_what_comes_before_the_first_step_stays():
    told = WhatIf(op(0, 80), mark(0, 50, 150), launch(80, 10, 1), kernel(95, 70, 1))
    assert told.steps(Change(shortened=rows(0))) == [115 - 30]


def test_a_graph_that_was_not_recorded_is_waited_for_by_whatever_comes_next():
    told = WhatIf(
        mark(0, 0, 215),
        launch(0, 10, 1, "cudaGraphLaunch"),
        sync(20, 200),
        launch(200, 5, 2),
        kernel(210, 10, 2),
    )
    assert told.steps() == [220]
    assert told.steps(Change(unblocked=rows(2))) == [200 + 1 + 10]


def test_work_without_a_launch_call_leaves_with_the_work_after_it():
    """The second kernel's call is not recorded; it begins 15 after where its launch must have been, at 100."""
    told = WhatIf(
        mark(0, 0, 130),
        launch(0, 10, 1),
        kernel(15, 10, 1),
        op(10, 100),
        kernel(115, 10, 0),
        launch(110, 10, 3),
        kernel(126, 10, 3),
    )
    assert told.steps() == [136]
    assert told.steps(Change(shortened=rows(3), host_scale=0.5)) == [136 - 45]


def test_a_launch_made_faster_brings_its_kernel_forward():
    """A first launch that loads its kernel takes 1000, and its kernel begins when it is done."""
    told = WhatIf(mark(0, 0, 1020), launch(0, 1000, 1), kernel(1005, 10, 1), launch(1000, 10, 2), kernel(1015, 30, 2))
    assert told.steps() == [1045]
    assert told.steps(Change(shortened=rows(1))) == [45]


def test_a_change_names_rows_of_the_trace_and_shares_of_time():
    told = launch_bound(10)
    with pytest.raises(ValueError, match="row"):
        told.steps(Change(removed=rows(16)))
    with pytest.raises(ValueError, match="share"):
        Change(host_scale=-0.5)
    with pytest.raises(ValueError, match="share"):
        Change(device_scale=float("nan"))


def test_an_upload_from_pageable_memory_holds_its_caller_almost_to_its_end():
    """The call waits for the kernel and returns 10 before the end of the copy; so it does with a faster kernel."""
    told = WhatIf(
        mark(0, 0, 210),
        launch(0, 10, 1),
        kernel(15, 100, 1),
        launch(10, 190, 2, "cudaMemcpyAsync"),
        copy(116, 94, 2),
    )
    assert told.steps() == [210]
    assert told.steps(Change(scaled=rows(2), device_scale=0.5)) == [160]


def record(start: float, call: int, recorded: int, kind: str, stream: int = -1) -> Event:
    """The profiler's record of a call that waits for the event that another call recorded on stream 7."""
    args = {"device": 0, "stream": stream, "correlation": call, "cuda_sync_kind": kind}
    args |= {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": recorded}
    return event("cuda_sync", kind, int(start * US), 1000, (0, stream), args)


@pytest.mark.parametrize(("told_by", "start"), [("records", 160), ("calls", 160), ("times", 116)])
def test_work_of_one_stream_that_waits_for_another(told_by, start):
    """The kernel of stream 20 is launched at 25 and begins 45, or just 1, after the one of stream 7 has ended."""
    calls = [launch(10, 2, 5, "cudaEventRecord"), launch(12, 2, 6, "cudaStreamWaitEvent")]
    told = WhatIf(
        mark(0, 0, 30),
        launch(0, 10, 1),
        kernel(15, 100, 1),
        launch(20, 5, 2),
        kernel(start, 30, 2, stream=20),
        *(calls if told_by != "times" else []),
        *([record(12, 6, 5, "Stream Wait Event", stream=20)] if told_by == "records" else []),
    )
    assert told.steps() == [start + 30]
    assert told.steps(Change(scaled=rows(2), device_scale=0.5)) == [start + 30 - 50]


@pytest.mark.parametrize("recorded", [True, False])
def test_a_call_that_waits_for_an_event_waits_for_what_was_submitted_before_it(recorded):
    """Two kernels of 100 on stream 7; the event lies between them, and the host goes on 3 after the first."""
    told = WhatIf(
        mark(0, 0, 268),
        launch(0, 10, 1),
        kernel(15, 100, 1),
        launch(10, 5, 5, "cudaEventRecord"),
        launch(15, 5, 2),
        kernel(115, 100, 2),
        launch(20, 98, 6, "cudaEventSynchronize"),
        op(118, 268),
        *([record(20, 6, 5, "Event Sync")] if recorded else []),
    )
    assert told.steps() == [268]
    assert told.steps(Change(scaled=rows(2), device_scale=0.5)) == [218]
    assert told.steps(Change(scaled=rows(5), device_scale=0.5)) == [268]
    assert told.steps(Change(unblocked=rows(6))) == [215]
