"""What encloses an instant on a thread."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.reader import trace_of
from written import frame, operator, parsed

from torchdiag.timeline.stacks import Stacks, user_frames


def asked(events, question, instants, thread=1):
    """Names of the innermost or outermost events at instants of a thread, None where none covers it."""
    trace = trace_of(parsed(events), {})
    stacks = Stacks(trace, np.arange(len(trace)))
    track = np.full(len(instants), trace.tracks.tids.index(thread), np.int32)
    rows = getattr(stacks, question)(track, np.array(instants, np.int64))
    return [trace.names[int(trace.name[row])] if row >= 0 else None for row in rows]


NESTED = [
    operator(0, 100, "outer"),
    operator(10, 30, "first"),
    operator(20, 10, "inside"),
    operator(60, 20, "second"),
    operator(0, 100, "elsewhere", thread=2),
]


def test_the_innermost_event_started_last():
    assert asked(NESTED, "innermost", [0, 10, 25, 30, 45, 60, 79, 80, 99]) == [
        "outer", "first", "inside", "first", "outer", "second", "second", "outer", "outer",
    ]  # fmt: skip


def test_the_outermost_event_started_first():
    assert asked(NESTED[1:], "outermost", [5, 10, 25, 45, 60]) == [None, "first", "first", None, "second"]


def test_nothing_covers_what_lies_outside():
    assert asked(NESTED, "innermost", [100, 5000]) == [None, None]
    assert asked(NESTED, "outermost", [100, 5000]) == [None, None]


def test_instants_may_come_in_any_order_and_twice():
    assert asked(NESTED, "innermost", [60, 10, 60, 25]) == ["second", "first", "second", "inside"]


def test_other_threads_are_left_alone():
    assert asked(NESTED, "innermost", [25], thread=2) == ["elsewhere"]


def test_no_thread_is_covered_by_nothing():
    trace = trace_of(parsed(NESTED), {})
    stacks = Stacks(trace, np.arange(len(trace)))
    assert stacks.innermost(np.array([-1], np.int32), np.array([25])).tolist() == [-1]


@pytest.mark.parametrize("instant", [5, 9])
def test_of_events_that_start_together_the_shorter_is_inside(instant):
    events = [operator(5, 5, "short"), operator(5, 50, "long")]
    assert asked(events, "innermost", [instant]) == ["short"]
    assert asked(events, "outermost", [instant]) == ["long"]


def test_of_equal_events_the_one_written_first_is_outside():
    events = [operator(5, 5, "aten::matmul"), operator(5, 5, "aten::mm")]
    assert asked(events, "outermost", [5]) == ["aten::matmul"]
    assert asked(events, "innermost", [5]) == ["aten::mm"]


def test_events_that_cross_do_no_harm():
    crossing = [operator(0, 20, "a"), operator(10, 30, "b"), operator(25, 5, "c")]
    assert asked(crossing, "innermost", [15, 22, 27, 35]) == ["b", "b", "c", "b"]
    assert asked(crossing, "outermost", [15, 22, 27, 35]) == ["a", "b", "b", "b"]


spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.sampled_from([1, 2])), max_size=12)


@given(spans, st.lists(st.integers(-1, 45), max_size=8))
def test_it_is_what_the_definition_says(spans, instants):
    events = [
        operator(start, length, str(number), thread=thread) for number, (start, length, thread) in enumerate(spans)
    ]
    trace = trace_of(parsed([*events, operator(99, 1, "last", thread=1)]), {})
    stacks = Stacks(trace, np.arange(len(trace)))
    for thread in trace.tracks.tids:
        track = np.full(len(instants), trace.tracks.tids.index(thread), np.int32)
        inner = stacks.innermost(track, np.array(instants, np.int64)).tolist()
        outer = stacks.outermost(track, np.array(instants, np.int64)).tolist()
        for instant, found_inner, found_outer in zip(instants, inner, outer, strict=True):
            covering = [
                (start, -length, number)
                for number, (start, length, where) in enumerate(spans)
                if where == thread and start <= instant < start + length
            ]
            assert found_inner == (max(covering)[2] if covering else -1)
            assert found_outer == (min(covering)[2] if covering else -1)


def test_a_persons_frames_are_found_among_all_events():
    names = ["train.py(8): f", "torch/nn/m.py(1): g", "threading.py(3): h"]
    trace = trace_of(parsed([operator(0, 9), *[frame(0, 9, name) for name in names]]), {})
    assert user_frames(trace).tolist() == [1]
