import numpy as np
from hand import trace
from written import call, kernel

from torchdiag.timeline import activity, waits
from torchdiag.timeline.device_states import Gaps


def awaited(gap: tuple[int, int], *events, window_end: int = 1_000) -> int:
    found = trace(*events)
    gaps = Gaps(np.array(gap[:1]), np.array(gap[1:]))
    return int(waits.awaited_launches(found, gaps, activity.collect(found)[0], window_end)[0])


def test_a_gap_waits_for_the_launch_of_the_work_that_ends_it():
    assert awaited((10, 50), call(0, 1, 1), call(20, 1, 2), kernel(0, 10, 1), kernel(50, 5, 2), kernel(60, 5, 1)) == 1


def test_of_several_launches_the_least_by_start_end_name_and_row_counts():
    works = [kernel(50, 5, number, stream=number) for number in (1, 2, 3)]
    assert awaited((10, 50), call(9, 5, 1), call(8, 9, 2), call(8, 7, 3), *works) == 2
    assert awaited((10, 50), call(8, 7, 1, name="cuB"), call(8, 7, 2, name="cuA"), call(9, 7, 3), *works) == 1
    assert awaited((10, 50), call(8, 7, 1), call(8, 7, 2), call(8, 7, 3), *works) == 0


def test_work_without_a_launch_is_passed_over_when_other_work_has_one():
    assert awaited((10, 50), kernel(50, 5, 9), call(8, 7, 2), kernel(50, 5, 2, stream=8)) == 1
    assert awaited((10, 50), kernel(50, 5, 9)) == -1


def test_work_without_length_ends_a_wait_too():
    assert awaited((10, 50), call(8, 7, 2), kernel(50, 0, 2), kernel(50, 5, 9)) == 0


def test_a_gap_that_ends_with_the_window_waits_for_nothing():
    assert awaited((10, 50), call(8, 7, 2), kernel(50, 5, 2), window_end=50) == -1


def test_the_host_is_to_blame_until_the_launch_call_ends():
    found = trace(call(0, 5), call(20, 10, thread=2), call(45, 20))
    gaps = Gaps(np.array([10, 60, 100]), np.array([50, 62, 200]))
    split = waits.split(found, gaps, np.array([1, 2, 0]), 1_000, driver=0)
    assert split.host_end_ns.tolist() == [30, 62, 100]
    assert split.track.tolist() == [1, 0, 0]
    assert split.trailing.tolist() == [False, False, False]


def test_a_gap_that_ends_with_the_window_is_the_drivers():
    split = waits.split(trace(call(0, 5)), Gaps(np.array([10]), np.array([50])), np.array([-1]), 50, driver=0)
    assert (split.host_end_ns.tolist(), split.track.tolist(), split.trailing.tolist()) == ([50], [0], [True])


def test_names_are_ordered_as_texts():
    found = trace(call(0, 1, name="b"), call(0, 1, name="B"), call(0, 1, name="é"), call(0, 1, name="a"))
    assert waits.name_order(found, np.array([0, 1, 2, 3, 0])).tolist() == [2, 0, 3, 1, 2]
