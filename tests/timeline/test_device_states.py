from hand import trace
from written import copy, fill, kernel

from torchdiag.timeline import activity, device_states
from torchdiag.timeline.result import States, Window

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def swept(window: tuple[int, int], *events) -> tuple[States, list[tuple[int, int]]]:
    found, _ = activity.collect(trace(*events))
    states, gaps = device_states.sweep(found, Window(*window, "activity"))
    return states, list(zip(gaps.start_ns.tolist(), gaps.end_ns.tolist(), strict=True))


def test_an_instant_counts_for_the_first_state_that_applies():
    states, gaps = swept(
        (0, 100),
        kernel(10, 20),  # compute 10 to 30
        kernel(20, 30, name=NCCL, stream=8),  # communication 30 to 50
        fill(40, 20, stream=9),  # memory 50 to 60
        copy(0, 70, kind="HtoD", stream=10),  # transfer 0 to 10 and 60 to 70
    )
    assert states == States(compute=20, communication=20, memory=10, transfer=20, idle=30)
    assert gaps == [(70, 100)]


def test_copies_within_a_device_are_memory_between_devices_communication_and_with_the_host_transfer():
    for kind, state in {"DtoD": "memory", "PtoP": "communication", "HtoD": "transfer", "DtoH": "transfer"}.items():
        states, _ = swept((0, 10), copy(2, 5, kind=kind))
        assert getattr(states, state) == 5


def test_activity_is_clipped_to_the_window():
    states, gaps = swept((10, 30), kernel(0, 15), kernel(28, 50), kernel(100, 5), kernel(0, 5))
    assert states == States(7, 0, 0, 0, 13)
    assert gaps == [(15, 28)]


def test_activity_without_length_splits_no_gap():
    states, gaps = swept((0, 30), kernel(0, 10), kernel(15, 0), kernel(20, 10))
    assert states == States(20, 0, 0, 0, 10)
    assert gaps == [(10, 20)]


def test_activities_that_touch_leave_no_gap():
    assert swept((0, 20), kernel(0, 10), kernel(10, 10))[1] == []


def test_a_device_without_activity_in_the_window_has_one_gap():
    states, gaps = swept((100, 150), kernel(0, 10))
    assert states == States(0, 0, 0, 0, 50)
    assert gaps == [(100, 150)]


def test_a_window_without_length_holds_nothing():
    assert swept((5, 5), kernel(5, 0)) == (States(0, 0, 0, 0, 0), [])
