from hand import trace
from written import annotation, call, event, frame, kernel, mark, operator

from torchdiag.timeline import marks


def driver_of(found) -> int:
    return marks.driver(found, marks.marks(found))


def thread_of(found) -> int | str | None:
    return found.tracks.tids[driver_of(found)]


def test_marks_are_annotations_of_the_host_by_start_end_and_row():
    on_device = event("gpu_user_annotation", "ProfilerStep#0", 0, 9, (0, 7), {})
    found = trace(
        mark(2, 20, 10), mark(1, 10, 10), on_device, mark(1, 10, 5), mark(1, 10, 5), operator(0, 5, "ProfilerStep#9")
    )
    assert marks.marks(found).tolist() == [3, 4, 1, 0]


def test_only_names_that_start_like_a_mark_are_marks():
    found = trace(annotation(0, 5, "Optimizer.step#SGD.step"), annotation(0, 5, "my ProfilerStep#1"), frame(0, 5))
    assert marks.marks(found).tolist() == []


def test_old_traces_mark_steps_with_operators():
    found = trace(event("Operator", "ProfilerStep#3", 0, 9, (100, 1), {}))
    assert marks.marks(found).tolist() == [0]


def test_the_driver_has_most_marks_whatever_it_launches():
    assert thread_of(trace(mark(1, 0, 5, thread=3), call(0, 1, thread=4), call(2, 1, thread=4))) == 3


def test_of_threads_with_as_many_marks_the_one_with_more_launches_drives():
    found = trace(mark(1, 0, 5, thread=3), mark(1, 0, 5, thread=4), call(2, 1, thread=4), call(0, 1, thread=5))
    assert thread_of(found) == 4


def test_without_marks_the_thread_with_most_launches_drives_then_the_earliest():
    assert thread_of(trace(call(0, 1, thread=3), call(2, 1, thread=4), call(4, 1, thread=4))) == 4
    assert thread_of(trace(call(5, 1, thread=3), call(2, 1, thread=4))) == 4
    copies = [call(start, 1, name="cudaMemcpyAsync", thread=5) for start in range(3)]
    assert thread_of(trace(*copies, call(9, 1, thread=3))) == 3


def test_equals_are_decided_by_process_and_thread_as_texts():
    assert thread_of(trace(call(0, 1, thread=9), call(0, 1, thread=10))) == 10


def test_without_marks_and_launches_nobody_drives():
    assert driver_of(trace(operator(0, 5), kernel(0, 5))) == marks.NO_TRACK
