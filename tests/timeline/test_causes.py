"""One trace for each row of the table of causes, and for each way a gap splits."""

import pytest
from hand import CAUSES, charged, trace
from written import annotation, call, copy, frame, kernel, mark, operator, overhead

from torchdiag.timeline.causes import LAUNCH_LATENCY_NS
from torchdiag.timeline.partition import partition

LOADER_FRAME = "torch/utils/data/dataloader.py(708): __next__"
LOADER_ANNOTATION = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def waiting(*host, launch=None):
    """Charges of a gap from 10 to 60 that a launch call ends, from 50 to 60 unless given."""
    launch = launch or call(50, 10, 2)
    return charged(kernel(0, 10, 1), kernel(60, 10, 2), call(-5, 5, 1), launch, *host)


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (call(10, 40, name="cudaStreamSynchronize"), "sync"),
        (call(10, 40, name="hipDeviceSynchronize"), "sync"),
        (call(10, 40, name="cudaMemcpy"), "sync"),
        (call(10, 40, name="cudaMalloc"), "allocation"),
        (call(10, 40, name="cudaHostAlloc"), "allocation"),
        (call(10, 40, name="cuMemMap"), "allocation"),
        (call(10, 40, name="cuLaunchKernelEx"), "launch"),
        (call(10, 40, name="hipExtModuleLaunchKernel"), "launch"),
        (call(10, 40, name="cudaMemcpyAsync"), "copy_call"),
        (call(10, 40, name="cudaMemsetAsync"), "copy_call"),
        (call(10, 40, name="cudaEventQuery"), "runtime"),
        (operator(10, 40), "framework"),
        (overhead(10, 40), "profiler"),
        (frame(10, 40), "python"),
        (annotation(10, 40, "forward"), "python"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_gap_is_charged_to_the_innermost_event(event, cause):
    outer = [annotation(0, 70, "epoch"), operator(0, 70, "aten::outer")]
    if cause == "launch":
        assert waiting(event, *outer) == [(10, 60, "launch")]
        return
    if event["cat"] in ("python_function", "user_annotation"):
        outer = []
    assert waiting(event, *outer) == [(10, 50, cause), (50, 60, "launch")]


@pytest.mark.parametrize("loads", [annotation(5, 40, LOADER_ANNOTATION), frame(5, 40, LOADER_FRAME)])
def test_everything_within_a_data_loader_is_the_loaders(loads):
    host = [operator(0, 70), frame(10, 10, "dataset.py(3): __getitem__"), call(20, 5, name="cudaStreamSynchronize")]
    assert waiting(loads, *host) == [(10, 45, "dataloader"), (45, 50, "framework"), (50, 60, "launch")]


def test_an_event_that_outlives_the_loader_is_charged_to_it_only_while_that_lasts():
    assert waiting(frame(0, 30, LOADER_FRAME), operator(20, 30)) == [
        (10, 30, "dataloader"),
        (30, 50, "framework"),
        (50, 60, "launch"),
    ]


def test_a_loader_of_another_thread_does_not_count():
    host = [frame(0, 70, LOADER_FRAME, thread=2), operator(0, 70)]
    assert waiting(*host) == [(10, 50, "framework"), (50, 60, "launch")]


def test_frames_that_only_resemble_the_loader_are_python():
    for name in ("my/dataloader.py(708): __next__", "torch/utils/data/dataloader.py(708): __iter__"):
        assert waiting(frame(0, 50, name)) == [(10, 50, "python"), (50, 60, "launch")]


def test_work_submitted_before_the_gap_was_queued():
    assert waiting(operator(0, 70), launch=call(4, 6, 2)) == [(10, 60, "queued")]


def test_after_the_launch_call_latency_runs_up_to_50_us_and_the_rest_is_queued():
    end = 20 + LAUNCH_LATENCY_NS + 7
    events = [kernel(0, 10, 1), call(-5, 5, 1), call(12, 8, 2)]
    assert charged(*events, kernel(end, 5, 2)) == [
        (10, 12, "python"),
        (12, 20, "launch"),
        (20, 20 + LAUNCH_LATENCY_NS, "launch_latency"),
        (20 + LAUNCH_LATENCY_NS, end, "queued"),
    ]
    assert charged(*events, kernel(end - 7, 5, 2))[-1] == (20, end - 7, "launch_latency")


def test_a_call_that_returns_after_its_work_began_is_the_hosts_to_the_end_of_the_gap():
    assert waiting(launch=call(50, 400, 2)) == [(10, 50, "python"), (50, 60, "launch")]


def test_a_gap_before_unlinked_work_is_unattributed():
    assert charged(kernel(0, 10), kernel(60, 10), operator(0, 70), call(0, 5)) == [(10, 60, "unattributed")]


def test_a_gap_to_the_end_of_the_window_is_seen_from_the_driver():
    steps = [mark(1, 0, 100, thread=3), call(0, 5, 1), kernel(10, 10, 1)]
    told = charged(*steps, operator(30, 20, thread=3), call(60, 10, name="cudaDeviceSynchronize", thread=3))
    assert told[-5:] == [
        (20, 30, "python"),
        (30, 50, "framework"),
        (50, 60, "python"),
        (60, 70, "sync"),
        (70, 100, "python"),
    ]


def test_where_the_launching_thread_does_nothing_the_driver_stands_in_then_python():
    backward = [call(-5, 5, 1, thread=2), call(50, 10, 2, thread=2), operator(40, 10, thread=2)]
    driving = [mark(1, -9, 79), call(25, 10, name="cudaStreamSynchronize"), operator(38, 20)]
    works = [kernel(0, 10, 1), kernel(60, 10, 2)]
    assert charged(*works, *backward, *driving) == [
        (-9, -5, "python"),
        (-5, 0, "launch"),
        (10, 25, "python"),
        (25, 35, "sync"),
        (35, 38, "python"),
        (38, 50, "framework"),
        (50, 60, "launch"),
    ]


def test_without_any_host_event_idle_time_is_python():
    assert charged(kernel(0, 10, 1), call(55, 5, 2, thread=2), kernel(60, 10, 2)) == [
        (10, 55, "python"),
        (55, 60, "launch"),
    ]


def test_charges_name_event_launch_thread_and_gap():
    found = trace(
        kernel(0, 10, 1),  # 0
        kernel(60, 10, 2),  # 1
        kernel(90, 10),  # 2
        call(-5, 5, 1),  # 3
        call(50, 10, 2, thread=2),  # 4
        operator(20, 30),  # 5
        mark(1, 15, 2),  # 6
    )
    (time,) = partition(found, window="10:90").devices
    charges = time.charges
    columns = (charges.start_ns, charges.event, charges.launch, charges.track, charges.gap)
    main, other = found.track[5], found.track[4]
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
        (10, -1, 4, other, 0),
        (15, 6, 4, main, 0),
        (17, -1, 4, other, 0),
        (20, 5, 4, main, 0),
        (50, 4, 4, other, 0),
        (70, -1, -1, main, 1),
    ]
    assert charges.end_ns.tolist() == [15, 17, 20, 50, 60, 90]


def test_unattributed_queued_and_latency_name_no_event():
    found = trace(kernel(0, 10, 1), call(-9, 4, 1), call(-4, 2, 2), kernel(60, 10, 2), kernel(90, 10), copy(95, 9, 1))
    (time,) = partition(found).devices
    charges = time.charges
    assert [CAUSES[cause] for cause in charges.cause] == ["queued", "unattributed"]
    assert (charges.event.tolist(), charges.launch.tolist()) == ([-1, -1], [2, -1])
    assert charges.track.tolist() == [found.track[2], -1]
