"""The slow partition against cases counted by hand. All numbers are nanoseconds.

Most cases are one gap: a kernel runs in [0, 1000), the next begins at 10_000 and runs to 11_000, so that the window is
11_000 and the gap [1000, 10_000). The launch call of the second kernel and what the host did meanwhile differ.
"""

import pytest
from written import (
    annotation,
    arrow,
    call,
    copy,
    event,
    fill,
    frame,
    json_text,
    kernel,
    mark,
    microseconds,
    operator,
    overhead,
    parsed,
)

from reference.events import events_of
from reference.partition import Host, partition
from reference.reader import parse

FIRST, SECOND = kernel(0, 1000, 1), kernel(10_000, 1000, 2)
FIRST_LAUNCH = call(-500, 100, 1)


def only_device(events, **selection):
    (device,) = partition(parsed(events), **selection).values()
    assert sum(device.states.values()) == device.window[1] - device.window[0]
    assert sum(device.idle.values()) == device.states["idle"]
    assert sum(device.headline.values()) == device.window[1] - device.window[0]
    return device


def idle(events, **selection):
    return {cause: ns for cause, ns in only_device(events, **selection).idle.items() if ns}


def gap(*events, launch=None):
    """The idle causes between the two kernels."""
    return idle([FIRST_LAUNCH, FIRST, launch or call(8000, 500, 2), *events, SECOND])


def test_uncovered_host_time_is_python_then_the_launch_then_its_latency():
    assert gap() == {"python": 7000, "launch": 500, "launch_latency": 1500}


def test_work_submitted_before_the_gap_is_queued():
    assert gap(launch=call(400, 600, 2)) == {"queued": 9000}


def test_a_launch_that_ends_a_nanosecond_into_the_gap_is_not_queued_before_that():
    assert gap(launch=call(400, 601, 2)) == {"launch": 1, "launch_latency": 8999}


def test_latency_beyond_fifty_microseconds_is_queued():
    late = kernel(100_000, 1000, 2)
    assert idle([FIRST, call(8000, 500, 2), late]) == {
        "python": 7000,
        "launch": 500,
        "launch_latency": 50_000,
        "queued": 41_500,
    }


def test_a_launch_that_outlasts_the_gap_is_charged_to_its_end_only():
    assert gap(launch=call(8000, 5000, 2)) == {"python": 7000, "launch": 2000}


def test_work_without_a_call_is_unattributed():
    assert idle([FIRST, call(8000, 500, 3), SECOND]) == {"unattributed": 9000}


def test_correlation_zero_is_none():
    assert idle([FIRST, call(8000, 500, 0), kernel(10_000, 1000, 0)]) == {"unattributed": 9000}


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("cudaStreamSynchronize", "sync"),
        ("hipDeviceSynchronize", "sync"),
        ("cudaEventSynchronize", "sync"),
        ("cuCtxSynchronize", "sync"),
        ("cudaMemcpy", "sync"),
        ("hipMemcpyWithStream", "sync"),
        ("cudaMalloc", "allocation"),
        ("cudaFree", "allocation"),
        ("cudaHostAlloc", "allocation"),
        ("cudaHostRegister", "allocation"),
        ("cuMemMap", "allocation"),
        ("cudaLaunchKernelExC", "launch"),
        ("hipExtModuleLaunchKernel", "launch"),
        ("cudaMemcpyAsync", "copy_call"),
        ("cudaMemsetAsync", "copy_call"),
        ("cudaEventRecord", "runtime"),
        ("cudaStreamWaitEvent", "runtime"),
    ],
)
def test_each_sort_of_runtime_call_has_its_cause(name, cause):
    causes = {"python": 6000, "launch": 500, "launch_latency": 1500}
    causes[cause] = causes.get(cause, 0) + 1000
    assert gap(call(3000, 1000, 9, name=name)) == causes


def test_an_operator_is_framework_the_profiler_is_profiler_frames_and_annotations_are_python():
    events = operator(1000, 1000), overhead(2000, 1000), frame(3000, 1000), annotation(4000, 1000, "forward")
    assert gap(*events) == {"framework": 1000, "profiler": 1000, "python": 5000, "launch": 500, "launch_latency": 1500}


def test_the_innermost_event_is_the_one_that_started_last():
    events = frame(0, 9000), operator(2000, 6500), call(3000, 1000, 9, name="cudaMalloc")
    assert gap(*events) == {
        "python": 1000,
        "framework": 5000,
        "allocation": 1000,
        "launch": 500,
        "launch_latency": 1500,
    }


def test_among_equal_starts_the_shorter_is_innermost():
    events = operator(2000, 3000), frame(2000, 1000)
    assert gap(*events) == {"framework": 2000, "python": 5000, "launch": 500, "launch_latency": 1500}


def test_among_equal_intervals_the_call_is_innermost():
    events = frame(2000, 1000), operator(2000, 1000), call(2000, 1000, 9, name="cudaFree")
    assert gap(*events) == {"allocation": 1000, "python": 6000, "launch": 500, "launch_latency": 1500}


def test_crossing_slices_need_no_nesting():
    events = operator(2000, 3000), frame(4000, 3000)
    assert gap(*events) == {"framework": 2000, "python": 5000, "launch": 500, "launch_latency": 1500}


def test_the_data_loader_takes_all_below_it():
    loader = annotation(2000, 4000, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    events = loader, operator(3000, 1000), call(3200, 100, 9, name="cudaMalloc")
    assert gap(*events) == {"dataloader": 4000, "python": 3000, "launch": 500, "launch_latency": 1500}


def test_a_data_loader_frame_counts_like_the_annotation_and_another_frame_of_that_file_does_not():
    events = (
        frame(2000, 1000, "/usr/lib/torch/utils/data/dataloader.py(703): __next__"),
        frame(4000, 1000, "torch/utils/data/dataloader.py(94): __iter__"),
    )
    assert gap(*events) == {"dataloader": 1000, "python": 6000, "launch": 500, "launch_latency": 1500}


def test_where_the_launching_thread_has_nothing_the_driver_is_looked_at():
    """The mark makes thread 1 the driver; the kernel is launched from thread 2."""
    driver = mark(1, 0, 11_000), operator(3000, 2000)
    other = operator(6000, 1000, thread=2)
    causes = idle([call(-500, 100, 1, thread=2), FIRST, *driver, other, call(8000, 500, 2, thread=2), SECOND])
    assert causes == {"python": 4000, "framework": 3000, "launch": 500, "launch_latency": 1500}


def test_the_loader_of_the_driver_counts_only_where_the_driver_is_looked_at():
    loader = annotation(2000, 5000, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
    events = [mark(1, 0, 11_000), loader, operator(3000, 1000, thread=2), call(8000, 500, 2, thread=2)]
    assert idle([FIRST, *events, SECOND]) == {
        "python": 2000,
        "dataloader": 4000,
        "framework": 1000,
        "launch": 500,
        "launch_latency": 1500,
    }


def test_the_launch_that_began_first_counts_among_work_that_starts_together():
    together = kernel(10_000, 1000, 3, stream=8)
    events = [FIRST, call(2000, 1000, 2), call(8000, 500, 3), SECOND, together]
    assert idle(events) == {"python": 1000, "launch": 1000, "launch_latency": 7000}


def test_unlinked_work_is_ignored_next_to_linked_work():
    events = [FIRST, call(8000, 500, 2), kernel(10_000, 500, 77, stream=8), SECOND]
    assert idle(events) == {"python": 7000, "launch": 500, "launch_latency": 1500}


def test_work_of_no_length_splits_no_gap_but_its_launch_counts_where_it_starts():
    inside = kernel(5000, 0, 3, stream=8)
    assert gap(inside) == {"python": 7000, "launch": 500, "launch_latency": 1500}
    at_the_end = kernel(10_000, 0, 3, stream=8)
    assert gap(at_the_end, call(2000, 1000, 3)) == {"python": 1000, "launch": 1000, "launch_latency": 7000}


def test_the_window_of_marks_leads_in_and_trails_out():
    """[-2000, 0) is before any work, charged to the launch of the first kernel; [11_000, 13_000) has no next work."""
    events = [mark(1, -2000, 15_000), FIRST_LAUNCH, FIRST, call(400, 600, 2), SECOND, operator(11_000, 500)]
    device = only_device(events)
    assert (device.window, device.source) == ((-2000, 13_000), "steps")
    assert idle(events) == {
        "python": 1500 + 1500,
        "launch": 100,
        "launch_latency": 400,
        "queued": 9000,
        "framework": 500,
    }


def test_the_window_is_extended_to_work_launched_before_the_last_mark_ended():
    events = [mark(1, 0, 6000), call(5999, 1, 2), call(6000, 1, 3), FIRST, SECOND, kernel(20_000, 1000, 3)]
    assert only_device(events).window == (0, 11_000)


def test_without_marks_the_window_is_the_work():
    events = [call(-9000, 100, 1), FIRST, SECOND, frame(-9000, 30_000)]
    assert (only_device(events).window, only_device(events).source) == ((0, 11_000), "activity")


def test_annotations_of_the_device_are_no_marks():
    shadow = event("gpu_user_annotation", "ProfilerStep#1", 0, 50_000, (0, 7), {"device": 0, "stream": 7})
    assert only_device([shadow, FIRST, SECOND]).window == (0, 11_000)


def test_states_exclude_one_another():
    """[0, 4) kernel, of which [1, 2) overlaps all else; [4, 6) communication; [6, 8) memory; [8, 10) transfer."""
    events = [
        kernel(0, 4000),
        kernel(1000, 5000, name="ncclDevKernel_AllReduce_Sum_f32", stream=20),
        fill(1000, 7000, stream=21),
        copy(1000, 9000, stream=22),
    ]
    assert only_device(events).states == {
        "compute": 4000,
        "communication": 2000,
        "memory": 2000,
        "transfer": 2000,
        "idle": 0,
    }


@pytest.mark.parametrize(
    ("kind", "state"),
    [("HtoD", "transfer"), ("DtoH", "transfer"), ("DtoD", "memory"), ("PtoP", "communication"), ("HtoH", "memory")],
)
def test_copies_by_direction(kind, state):
    assert only_device([copy(0, 1000, kind=kind)]).states[state] == 1000


def test_what_is_no_work_of_the_device():
    """A host operator with a stream, a synchronisation record and a device annotation cover nothing."""
    others = [
        event("cpu_op", "triton_poi_fused_add", 2000, 1000, (100, 1), {"stream": 0}),
        event("cuda_sync", "Stream Sync", 4000, 1000, (0, 7), {"device": 0, "stream": 7}),
        event("gpu_user_annotation", "forward", 0, 10_000, (0, 7), {"device": 0, "stream": 7}),
    ]
    assert only_device([FIRST, *others, SECOND]).states["compute"] == 2000


def test_a_duration_that_overruns_the_next_by_more_than_a_millisecond_is_cut():
    events = [kernel(0, 1_002_001), kernel(2000, 1000), kernel(2_000_000, 1000)]
    assert only_device(events).states["compute"] == 2000 + 1000 + 1000
    legal = [kernel(0, 1_002_000), kernel(2000, 1000), kernel(2_000_000, 1000)]
    assert only_device(legal).states["compute"] == 1_002_000 + 1000
    other_stream = [kernel(0, 1_002_001), kernel(2000, 1000, stream=8), kernel(2_000_000, 1000)]
    assert only_device(other_stream).states["compute"] == 1_002_001 + 1000


def test_negative_durations_and_lost_times_are_dropped():
    far = 10**15
    late = [dict(item, ts=microseconds(far + at)) for item, at in ((FIRST, 0), (SECOND, 10_000))]
    events = [*late, kernel(0, 5000, 9), dict(SECOND, ts=microseconds(far + 5000), dur=microseconds(-1))]
    assert only_device(events).window == (far, far + 11_000)
    assert only_device([FIRST, SECOND]).window == (0, 11_000)


def test_devices_are_told_apart():
    events = [FIRST, SECOND, kernel(500, 100, device=3)]
    devices = partition(parsed(events))
    assert {device: found.window for device, found in devices.items()} == {0: (0, 11_000), 3: (500, 600)}


def test_a_graph_launch_owns_all_work_of_its_correlation():
    graph = call(8000, 500, 2, name="cudaGraphLaunch")
    parts = [kernel(10_000, 1000, 2), kernel(11_500, 1000, 2)]
    assert idle([FIRST, graph, *parts]) == {"python": 7000, "launch": 500, "launch_latency": 1500, "queued": 500}


def test_a_replay_whose_work_is_missing_is_unknown():
    """From the launch at 2000 to the end of the first synchronisation after it at 5000, then ordinary causes."""
    graph = call(2000, 500, 5, name="cudaGraphLaunch")
    sync = call(4000, 1000, 6, name="cudaDeviceSynchronize")
    assert gap(graph, sync) == {"python": 1000 + 3000, "unknown": 3000, "launch": 500, "launch_latency": 1500}


def test_a_replay_without_a_synchronisation_ends_where_later_work_starts():
    """Thus the gap is unknown from 2000 to its end: the next work was launched after the graph."""
    graph = call(2000, 500, 5, name="cudaGraphLaunch")
    assert gap(graph) == {"python": 1000, "unknown": 8000}


def test_old_files_link_by_flow_and_by_external_id():
    def legacy(category, name, start, length, place, **args):
        return event(category, name, start, length, place, args)

    work = [
        legacy("Kernel", "gemm", 0, 1000, (0, "stream 7"), device=0, stream=7),
        legacy("Kernel", "gemm", 10_000, 1000, (0, "stream 7"), device=0, stream=7, **{"External id": "12"}),
    ]
    by_identity = legacy("Runtime", "cudaLaunchKernel", 8000, 500, (100, "1"), **{"external id": 12})
    assert idle([*work, by_identity]) == {"python": 7000, "launch": 500, "launch_latency": 1500}
    by_flow = legacy("Runtime", "cudaLaunchKernel", 6000, 500, (100, "1"))
    arrows = [arrow("s", 4, 6000, (100, "1"), "async"), arrow("f", 4, 10_000, (0, "stream 7"), "async")]
    assert idle([*work, by_identity, by_flow, *arrows]) == {"python": 5000, "launch": 500, "launch_latency": 3500}


def test_lists_from_before_kineto():
    """The operator from which the arrow starts plays the launch call."""
    host, device = ("CPU functions", 1), ("CUDA functions", 0)
    work = [event(None, "mm", 0, 1000, device, {}), event(None, "mm", 10_000, 1000, device, {})]
    arrows = [arrow("s", 0, 8000, host, "cpu_to_cuda"), arrow("f", 0, 10_000, device, "cpu_to_cuda")]
    assert idle([event(None, "mm", 8000, 500, host, {}), *work, *arrows]) == {
        "framework": 500,
        "python": 7000,
        "launch_latency": 1500,
    }


def test_selections():
    events = [mark(0, -4000, 4000), mark(1, 0, 5000), mark(2, 5000, 6000), FIRST_LAUNCH, FIRST, SECOND]
    assert only_device(events, steps=slice(1, 2)).window == (0, 5000)
    assert only_device(events, steps=slice(0, 1)).window == (-4000, 1000)
    cut = only_device(events, window=(500, 10_400))
    assert (cut.window, cut.source) == ((500, 10_400), "selection")
    assert cut.states["compute"] == 900
    empty = only_device(events, window=(2000, 3000))
    assert empty.states["idle"] == empty.idle["python"] == 1000
    with pytest.raises(ValueError, match="nothing selected"):
        only_device(events, steps=slice(9, 10))


def test_the_driver_is_the_thread_of_the_marks_else_of_the_launches():
    def driver(*events):
        return Host(events_of(parsed(list(events)))).driver_thread()

    marks = [mark(1, 0, 10, thread=5), call(0, 1, thread=2), call(2, 1, thread=2)]
    assert driver(*marks) == (100, 5)
    assert driver(*marks, mark(2, 10, 10, thread=4)) == (100, 4)
    assert driver(*marks[1:], call(1, 1, thread=3)) == (100, 2)
    assert driver(call(5, 1, thread=2), call(4, 1, thread=3)) == (100, 3)
    assert driver(operator(0, 10)) is None


def test_host_only_traces_have_no_devices():
    assert partition(parsed([operator(0, 100), call(200, 10, 1)])) == {}


def test_layouts_say_the_same():
    events = [FIRST_LAUNCH, FIRST, call(8000, 500, 2), SECOND]
    assert len({str(parse(json_text(events, layout))[0]) for layout in ("compact", "pretty", "kineto")}) == 1
