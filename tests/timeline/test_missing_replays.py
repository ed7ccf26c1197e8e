from hand import charged, trace
from written import call, kernel, mark

from torchdiag.timeline import activity, missing_replays
from torchdiag.timeline.missing_replays import FOREVER
from torchdiag.timeline.partition import partition


def replays(*events) -> list[tuple[int, int, int]]:
    found = trace(*events)
    told = missing_replays.missing_replays(found, activity.collect(found)[0])
    return list(zip(told.start_ns.tolist(), told.end_ns.tolist(), told.launch.tolist(), strict=True))


def graph(start: int, length: int, correlation: int = 0, *, thread: int = 1):
    return call(start, length, correlation, name="cudaGraphLaunch", thread=thread)


def wait(start: int, length: int, *, thread: int = 1):
    return call(start, length, name="cudaStreamSynchronize", thread=thread)


def test_a_graph_launch_with_work_was_recorded():
    assert replays(graph(0, 5, 1), kernel(10, 5, 1)) == []


def test_a_replay_lasts_to_the_end_of_the_next_call_that_waits_on_any_thread():
    assert replays(graph(0, 5), wait(4, 90), wait(6, 20, thread=2), wait(8, 2)) == [(0, 26, 0)]


def test_or_to_the_start_of_the_first_work_launched_after_it():
    later = [call(7, 1, 8), kernel(30, 5, 8), call(9, 1, 9), kernel(20, 5, 9, device=1)]
    assert replays(graph(0, 5), *later, wait(6, 40)) == [(0, 20, 0)]
    assert replays(graph(0, 5), call(4, 1, 8), kernel(10, 5, 8)) == [(0, FOREVER, 0)]


def test_replays_that_overlap_are_one():
    assert replays(graph(0, 5), graph(10, 5), wait(20, 5), graph(40, 5), wait(50, 5)) == [(0, 25, 0), (40, 55, 3)]


def test_idle_time_within_a_replay_is_unknown_whatever_its_cause():
    events = [mark(1, 0, 100), call(1, 1, 1), kernel(5, 5, 1), graph(20, 5), wait(30, 10), call(55, 5, 2)]
    assert charged(*events, kernel(60, 10, 2)) == [
        (0, 1, "python"),
        (1, 2, "launch"),
        (2, 5, "launch_latency"),
        (10, 20, "python"),
        (20, 40, "unknown"),
        (40, 55, "python"),
        (55, 60, "launch"),
        (70, 100, "python"),
    ]


def test_busy_time_within_a_replay_stays_busy_and_every_device_is_unknown():
    works = [kernel(5, 5, 1), kernel(25, 5, 1), kernel(0, 90, 1, device=1)]
    events = [mark(1, 0, 100), call(1, 1, 1), graph(20, 5), *works]
    assert (20, 25, "unknown") in charged(*events)
    assert charged(*events)[-1] == (30, 100, "unknown")
    assert charged(*events, device=1) == [(90, 100, "unknown")]


def test_unknown_time_names_the_graph_launch():
    found = trace(mark(1, 0, 100), call(1, 1, 1), kernel(5, 5, 1), graph(20, 5, thread=2))
    (time,) = partition(found).devices
    unknown = time.charges.cause == missing_replays.UNKNOWN
    assert time.charges.launch[unknown].tolist() == [3]
    assert time.charges.event[unknown].tolist() == [-1]
    assert time.charges.track[unknown].tolist() == [found.track[3]]
