import pytest
from hand import trace
from written import call, event, kernel, mark, operator

from torchdiag.errors import TorchdiagError
from torchdiag.timeline import activity, marks, window
from torchdiag.timeline.result import Window


def window_of(*events, device: int = 0) -> Window:
    found = trace(*events)
    return window.window_of(found, marks.marks(found), activity.collect(found)[0].on(device))


def test_without_marks_the_window_is_the_activity():
    assert window_of(operator(0, 100), kernel(10, 50), kernel(20, 5)) == Window(10, 60, "activity")


def test_marks_span_from_the_first_start_to_the_last_end():
    assert window_of(mark(2, 30, 10), mark(1, 5, 40), kernel(0, 90)) == Window(5, 45, "steps")


def test_the_end_moves_to_the_end_of_work_launched_before_it():
    steps = [mark(1, 0, 10), mark(2, 10, 10)]
    assert window_of(*steps, call(19, 5, 1), kernel(40, 10, 1)) == Window(0, 50, "steps")
    assert window_of(*steps, call(20, 5, 1), kernel(40, 10, 1)) == Window(0, 20, "steps")
    assert window_of(*steps, kernel(40, 10, 1)) == Window(0, 20, "steps")


def test_the_end_moves_once():
    later = [call(40, 1, 2), kernel(60, 10, 2)]
    assert window_of(mark(1, 0, 20), call(19, 5, 1), kernel(40, 10, 1), *later) == Window(0, 50, "steps")


def test_each_device_has_its_own_end():
    events = [mark(1, 0, 20), call(5, 1, 1), call(6, 1, 2), kernel(40, 10, 1), kernel(30, 5, 2, device=1)]
    assert window_of(*events) == Window(0, 50, "steps")
    assert window_of(*events, device=1) == Window(0, 35, "steps")


def test_steps_are_chosen_like_items_of_a_list():
    found = trace(mark(3, 30, 5), mark(1, 10, 5), mark(2, 20, 5))
    rows = marks.marks(found)
    assert window.selected_marks(rows, None).tolist() == [1, 2, 0]
    assert window.selected_marks(rows, "1:").tolist() == [2, 0]
    assert window.selected_marks(rows, "0").tolist() == [1]
    assert window.selected_marks(rows, "-1:").tolist() == [0]


def test_steps_that_are_not_there_are_a_mistake():
    rows = marks.marks(trace(mark(1, 10, 5)))
    with pytest.raises(TorchdiagError, match="1 steps, 0 to 0"):
        window.selected_marks(rows, "1:3")
    with pytest.raises(TorchdiagError, match="no ProfilerStep# marks"):
        window.selected_marks(rows[:0], "0:3")


def test_a_chosen_window_counts_from_the_first_complete_event_of_any_category():
    found = trace(event("Trace", "PyTorch Profiler (0)", 1_000, 9_000, ("Spans", 0), {}), kernel(2_000, 500))
    assert window.extent(found) == (1_000, 10_000)
    assert window.selected_window(found, "1us:2us") == Window(2_000, 3_000, "selection")
    with pytest.raises(TorchdiagError):
        window.selected_window(found, "1ms:2ms")
    assert window.selected_window(found, "1000:9999999999999999999") == Window(1_000, 2**62, "selection")


def test_the_extent_skips_events_whose_times_cannot_be_meant():
    day = 86_400_000_000_000
    assert window.extent(trace(kernel(0, 5), kernel(2 * day, 5), kernel(2 * day + 9, -3))) == (2 * day, 2 * day + 5)
    assert window.extent(trace()) == (0, 0)
