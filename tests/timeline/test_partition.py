import pytest
from hand import trace
from written import call, frame, kernel, mark, operator

from torchdiag.errors import TorchdiagError
from torchdiag.timeline.analysis import analyse
from torchdiag.timeline.partition import partition
from torchdiag.timeline.result import Cause, Headline, States, Window

TWO_DEVICES = [
    mark(1, 0, 50),
    mark(2, 50, 50),
    call(0, 10, 1),
    call(50, 10, 2),
    kernel(10, 10, 1),
    kernel(60, 30, 2),
    kernel(65, 5, device=3),
]


def test_every_device_is_partitioned():
    found = partition(trace(*TWO_DEVICES))
    assert [(time.device, time.window, time.states) for time in found.devices] == [
        (0, Window(0, 100, "steps"), States(40, 0, 0, 0, 60)),
        (3, Window(0, 100, "steps"), States(5, 0, 0, 0, 95)),
    ]
    assert (found.marks.tolist(), found.driver, found.overruns) == ([0, 1], 0, 0)


def test_a_device_outside_the_window_is_one_gap():
    found = partition(trace(*TWO_DEVICES), steps="0")
    assert [(time.window, time.states.idle) for time in found.devices] == [
        (Window(0, 50, "steps"), 40),
        (Window(0, 50, "steps"), 50),
    ]
    assert found.selected.tolist() == [0]


def test_one_device_can_be_chosen():
    assert [time.device for time in partition(trace(*TWO_DEVICES), device=3).devices] == [3]
    with pytest.raises(TorchdiagError, match="no activity on device 1; devices with activity: 0, 3"):
        partition(trace(*TWO_DEVICES), device=1)


def test_steps_and_window_exclude_each_other():
    with pytest.raises(TorchdiagError, match="one of them"):
        partition(trace(*TWO_DEVICES), steps="0", window="0:9")


def test_a_breakdown_adds_up():
    breakdown = analyse(trace(*TWO_DEVICES, frame(0, 100)))
    first, second = breakdown.devices
    assert first.headline == Headline(active=40, transfer=0, python_overhead=40, idle=20)
    assert {cause.cause: cause.idle_ns for cause in first.causes if cause.idle_ns} == {
        Cause.PYTHON: 40,
        Cause.LAUNCH: 20,
    }
    assert {cause.cause: cause.idle_ns for cause in second.causes if cause.idle_ns} == {
        Cause.UNATTRIBUTED: 65,
        Cause.PYTHON: 30,
    }
    assert [cause.cause for cause in second.causes] == list(Cause)
    assert (breakdown.steps_source, len(breakdown.steps), breakdown.host) == ("marks", 2, None)


def test_without_device_activity_the_host_is_broken_down():
    breakdown = analyse(trace(operator(0, 10), call(12, 3)))
    assert breakdown.devices == ()
    assert breakdown.host is not None
    assert breakdown.host.operator_ns == 10


def test_a_trace_without_events_is_a_mistake():
    with pytest.raises(TorchdiagError, match="holds no events"):
        analyse(trace())


def test_the_names_of_devices_come_from_the_trace():
    properties = [{"id": 3, "name": "NVIDIA H100"}, {"id": 1}]
    found = trace(*TWO_DEVICES, deviceProperties=properties, distributedInfo={"rank": 5, "world_size": 8})
    breakdown = analyse(found)
    assert [(device.name, device.kind) for device in breakdown.devices] == [
        ("device 0", "CUDA"),
        ("NVIDIA H100", "CUDA"),
    ]
    assert breakdown.trace.ranks == (5,)


def test_odd_metadata_is_passed_over():
    found = trace(*TWO_DEVICES, deviceProperties={"id": 3}, distributedInfo="rank 5", torch_version=2)
    breakdown = analyse(found)
    assert breakdown.devices[1].name == "device 3"
    assert (breakdown.trace.ranks, breakdown.trace.torch) == ((), None)


def test_events_left_out_are_told():
    day = 86_400_000_000_000
    late = [dict(event, ts=str(float(event["ts"]) + 2 * day / 1000)) for event in TWO_DEVICES]
    notes = {note.code: note.count for note in analyse(trace(*late, kernel(0, 5), kernel(2 * day, -9))).trace.quality}
    assert (notes["zero-timestamp"], notes["negative-duration"]) == (1, 1)
