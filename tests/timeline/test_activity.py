from dataclasses import replace

from hand import trace
from written import call, copy, event, fill, frame, kernel, operator

from torchdiag.timeline import activity
from torchdiag.trace.vocabulary import Work

MS = 1_000_000


def test_activities_are_sorted_by_device_start_end_and_row():
    found, overruns = activity.collect(
        trace(kernel(50, 5, device=1), kernel(20, 9), kernel(20, 5), call(0, 1, 1), fill(20, 5, stream=8), copy(10, 5))
    )
    assert found.row.tolist() == [5, 2, 4, 1, 0]
    assert found.device.tolist() == [0, 0, 0, 0, 1]
    assert found.end_ns.tolist() == [15, 25, 25, 29, 55]
    assert found.work.tolist() == [Work.TRANSFER, Work.COMPUTE, Work.MEMORY, Work.COMPUTE, Work.COMPUTE]
    assert overruns == 0


def test_rows_of_the_host_that_carry_a_stream_are_no_activity():
    triton = operator(0, 100, "triton_poi_fused_add_0")
    triton["args"] = {"stream": 7, "device": 0}
    annotated = event("gpu_user_annotation", "ProfilerStep#1", 0, 100, (0, 7), {"device": 0, "stream": 7})
    record = event("cuda_sync", "Stream Sync", 0, 100, (0, 7), {"device": 0, "stream": 7})
    found, _ = activity.collect(trace(triton, annotated, record, frame(0, 5)))
    assert len(found) == 0
    assert found.devices() == []


def test_the_device_is_the_argument_else_a_pid_that_is_a_number_else_0():
    told = event("kernel", "k", 0, 1, (5, 7), {"device": 3})
    by_pid = event("kernel", "k", 0, 1, (5, 7), {})
    by_name = event("kernel", "k", 0, 1, ("GPU", 7), {})
    found, _ = activity.collect(trace(told, by_pid, by_name))
    assert sorted(zip(found.row.tolist(), found.device.tolist(), strict=True)) == [(0, 3), (1, 5), (2, 0)]
    assert found.stream.tolist() == [-1, -1, -1]
    assert found.on(5).row.tolist() == [1]


def test_a_millisecond_past_the_next_start_is_overlap_and_more_is_a_fault():
    fair, _ = activity.collect(trace(kernel(0, 10 + MS), kernel(10, 5)))
    assert fair.end_ns.tolist() == [10 + MS, 15]
    faulty, overruns = activity.collect(trace(kernel(0, 11 + MS), kernel(10, 5)))
    assert faulty.end_ns.tolist() == [10, 15]
    assert overruns == 1


def test_the_next_is_the_one_that_starts_strictly_later_on_the_same_stream():
    found, overruns = activity.collect(
        trace(
            kernel(0, 9 * MS),
            kernel(0, 8 * MS),
            kernel(5, 5, stream=8),
            kernel(20, 9 * MS, device=1),
            kernel(2 * MS, 5),
        )
    )
    assert overruns == 2
    assert found.end_ns.tolist() == [2 * MS, 2 * MS, 10, 2 * MS + 5, 20 + 9 * MS]


def test_cut_activities_are_in_order_again():
    found, _ = activity.collect(trace(kernel(0, 9 * MS), kernel(0, 8 * MS), kernel(5, 5)))
    assert found.end_ns.tolist() == [5, 5, 10]
    assert found.row.tolist() == [0, 1, 2]


def test_negative_durations_and_times_at_0_far_from_the_others_are_left_out():
    day = 86_400_000_000_000
    late = [kernel(2 * day, 10), kernel(2 * day + 20, 10)]
    assert activity.collect(trace(kernel(0, 5), *late))[0].row.tolist() == [1, 2]
    assert activity.collect(trace(kernel(0, 5), kernel(10, 10), kernel(30, 10)))[0].row.tolist() == [0, 1, 2]
    assert activity.collect(trace(kernel(0, -5), kernel(10, 10)))[0].row.tolist() == [1]


def test_a_part_of_the_activities_keeps_all_columns():
    found, _ = activity.collect(trace(kernel(0, 5, 1), kernel(10, 5, 2), call(0, 1, 1)))
    part = found[1:]
    assert (part.row.tolist(), part.launch.tolist()) == ([1], [-1])
    assert replace(part).start_ns.tolist() == [10]
