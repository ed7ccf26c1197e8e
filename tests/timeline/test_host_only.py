"""The driver thread's time in traces without device activity."""

import numpy as np
from hand import trace
from hypothesis import given
from reference.reader import trace_of
from strategies import traces
from written import annotation, call, event, frame, mark, operator, overhead, parsed

from torchdiag.timeline.host_only import host_breakdown
from torchdiag.timeline.marks import driver, marks


def broken_down(*events, top=None):
    data = trace(*events)
    found = marks(data)
    return host_breakdown(data, found, driver(data, found), top)


def test_every_nanosecond_goes_to_one_figure():
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    found = broken_down(
        mark(1, 0, 1000),
        frame(100, 700, "train.py(8): main"),
        annotation(150, 100, loader),
        operator(160, 20, "aten::stack"),
        operator(300, 100, "aten::mm"),
        call(350, 30, name="cudaMalloc"),
        overhead(500, 50),
        operator(0, 600, "aten::mul", thread=2),
    )
    assert (found.window.start_ns, found.window.end_ns, found.window.source) == (0, 1000, "steps")
    assert found.dataloader_ns == 100
    assert found.operator_ns == 70
    assert found.runtime_ns == 30 + 50
    assert found.python_ns == 1000 - 100 - 70 - 80
    assert found.uncovered_ns == 0
    assert found.cpu_active_ns == 600
    assert found.thread == "process 100 thread 1"


def test_what_no_event_covers_is_uncovered():
    found = broken_down(mark(1, 0, 0), operator(10, 20), mark(2, 100, 0))
    assert (found.operator_ns, found.uncovered_ns, found.window.length_ns) == (20, 80, 100)


def test_without_marks_the_window_is_the_threads_own():
    found = broken_down(operator(50, 20), operator(100, 20), operator(0, 500, thread=2))
    assert (found.window.start_ns, found.window.end_ns, found.window.source) == (50, 120, "activity")
    assert (found.operator_ns, found.uncovered_ns) == (40, 30)
    assert found.cpu_active_ns == 70


def test_places_are_lines_and_operators_longest_first():
    found = broken_down(
        mark(1, 0, 1000),
        frame(0, 1000, "train.py(8): main"),
        operator(100, 300, "aten::mm"),
        operator(500, 200, "aten::mm"),
        call(550, 50, name="cudaMalloc"),
        top=2,
    )
    assert [(place.label, place.idle_ns) for place in found.places] == [
        ("aten::mm at train.py:8 main", 500),
        ("train.py:8 main", 500),
    ]


def test_a_trace_of_nothing_the_host_did():
    found = broken_down(event("something", "x", 0, 5, (1, 1), {}))
    assert (found.window.length_ns, found.thread, found.places) == (0, "no thread", ())


@given(traces())
def test_the_first_five_sum_to_the_window(events):
    data = trace_of(parsed(events), {})
    for rows in (marks(data), np.zeros(0, np.int64)):
        found = host_breakdown(data, rows, driver(data, rows), None)
        figures = (found.operator_ns, found.runtime_ns, found.python_ns, found.dataloader_ns, found.uncovered_ns)
        assert sum(figures) == found.window.length_ns
        assert min(figures) >= 0
        assert sum(place.idle_ns for place in found.places) == found.window.length_ns - found.uncovered_ns
