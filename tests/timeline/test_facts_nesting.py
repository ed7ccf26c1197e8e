"""Parents of host events: who encloses whom on a thread, and what was launched below."""

import numpy as np
import pytest
from hand import trace
from hypothesis import given, settings
from hypothesis import strategies as st
from written import Event, annotation, call, frame, kernel, mark, operator

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import Nesting, named, nesting, operators
from torchdiag.trace.vocabulary import Kind


def tree(*events: Event) -> Nesting:
    return Facts.of(trace(*events)).get(nesting)


def parents(*events: Event) -> list[int]:
    return tree(*events).parent.tolist()


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([operator(0, 100), operator(10, 50), operator(20, 10)], [-1, 0, 1], id="nested"),
        pytest.param([operator(20, 10), operator(10, 50), operator(0, 100)], [1, 2, -1], id="whatever the order"),
        pytest.param([operator(0, 50), operator(50, 50)], [-1, -1], id="back to back"),
        pytest.param([operator(0, 100), operator(0, 40), operator(60, 40)], [-1, 0, 0], id="at both ends"),
        pytest.param([operator(0, 60), operator(40, 60)], [-1, -1], id="crossing"),
        pytest.param([operator(0, 60), operator(40, 60), operator(70, 10)], [-1, -1, 1], id="inside the later of two"),
        pytest.param([operator(0, 100), operator(10, 80), operator(50, 60)], [-1, 0, -1], id="one that outlasts both"),
        pytest.param([operator(0, 90), operator(0, 90), operator(0, 90)], [-1, 0, 1], id="equal: the earlier encloses"),
        pytest.param([operator(0, 90), frame(0, 90), annotation(0, 90, "a")], [1, 2, -1], id="equal: by their kind"),
        pytest.param([operator(0, 90), operator(0, 90, thread=2)], [-1, -1], id="on two threads"),
        pytest.param([operator(0, 90), operator(40, 0)], [-1, 0], id="no length, inside"),
        pytest.param([operator(0, 90), operator(0, 0), operator(90, 0)], [-1, 0, 0], id="no length, at the ends"),
        pytest.param([operator(0, 50), operator(50, 50), operator(50, 0)], [-1, -1, 1], id="no length, between two"),
        pytest.param([operator(0, 90), kernel(10, 20)], [-1, -1], id="a device is no thread"),
        pytest.param([], [], id="nothing"),
    ],
)  # fmt: skip
def test_the_parent_is_the_innermost_event_around(events: list[Event], expected: list[int]):
    assert parents(*events) == expected


INTERVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20), st.integers(1, 2)), max_size=25)


@settings(max_examples=60, deadline=None)
@given(INTERVALS)
def test_a_parent_encloses_its_child_and_where_nothing_crosses_it_is_the_shortest_that_does(
    intervals: list[tuple[int, int, int]],
):
    events = [operator(start, length, thread=thread) for start, length, thread in intervals]
    spans = [(start, start + length, thread) for start, length, thread in intervals]
    for child, parent in enumerate(parents(*events)):
        low, high, thread = spans[child]
        around = [span for span in spans if span[2] == thread and span[0] <= low and high <= span[1]]
        around.remove(spans[child])
        if parent >= 0:
            assert spans[parent] in around
        if not any(crossing(one, other) for one in spans for other in spans):
            shortest = min((end - begin for begin, end, _ in around), default=None)
            own = None if parent < 0 else spans[parent][1] - spans[parent][0]
            # Of equal events one encloses the other: either may be outermost.
            assert own == shortest or shortest == high - low


def crossing(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    return one[2] == other[2] and one[0] < other[0] < one[1] < other[1]


STEP = [
    mark(1, 0, 1000),
    operator(100, 400, "aten::linear"),
    operator(150, 300, "aten::addmm"),
    call(200, 50, 1),
    operator(600, 100, "aten::relu"),
    call(620, 10, 2),
    kernel(300, 100, 1),
    kernel(700, 50, 2),
    call(900, 10, 3),
    kernel(950, 10, 3),
]


def test_ancestors_and_descendants():
    found = tree(*STEP)
    assert found.nearest(np.array([3, 5, 8]), found.trace.kind == Kind.OPERATOR).tolist() == [2, 4, -1]
    assert found.outermost(np.array([3, 2, 8]), found.trace.kind == Kind.OPERATOR).tolist() == [1, 1, -1]
    assert found.outermost(np.array([1]), found.mask(np.array([1]))).tolist() == [1]
    rows = np.arange(len(STEP))
    assert found.descendants(np.array([1]), rows).tolist() == [2, 3]
    assert found.children(np.array([0]), rows).tolist() == [1, 4, 8]
    assert found.tops(np.array([1, 2, 3, 4])).tolist() == [1, 4]
    assert found.below(np.array([3, 5]), np.array([1])).tolist() == [True, False]


def test_what_was_launched_below_is_told_by_the_calls():
    found = tree(*STEP)

    def kernels(tops: list[int]) -> list[int]:
        return found.activities.row[found.launched_below(np.array(tops, np.int64))].tolist()

    assert kernels([1]) == [6] and kernels([0]) == [6, 7, 9] and kernels([3]) == [6] and kernels([]) == []
    assert found.activities.row[found.launched_by(np.array([5, 3]))].tolist() == [6, 7]
    assert found.launched_by(np.array([1])).tolist() == []


def test_time_of_its_own_is_what_no_child_takes():
    assert tree(*STEP).own_ns.tolist() == [1000 - 400 - 100 - 10, 100, 250, 50, 90, 10, 0, 0, 10, 0]


def test_names_are_found_by_kind():
    found = tree(*STEP, annotation(1, 2, "aten::relu")).trace
    assert operators(found, "aten::relu", "aten::addmm").tolist() == [2, 4]
    assert named(found, Kind.ANNOTATION, lambda name: name.startswith("aten")).tolist() == [10]
