import random

import numpy as np
import pytest
from hand import trace
from hypothesis import given
from hypothesis import strategies as st
from written import annotation, call, frame, kernel, operator, overhead

from torchdiag.timeline.host_states import INNER_FIRST, HostStates
from torchdiag.trace.vocabulary import Kind

KINDS = {
    Kind.RUNTIME: lambda start, length, name: call(start, length, name=name),
    Kind.OVERHEAD: lambda start, length, name: dict(overhead(start, length), name=name),
    Kind.OPERATOR: operator,
    Kind.PYTHON: frame,
    Kind.ANNOTATION: annotation,
}


def pieces(found, *stretches: tuple[int, int]) -> list[tuple[int, int, int]]:
    """(start, end, row) of what covers the stretches on the first event's thread."""
    start = np.array([low for low, _ in stretches], np.int64)
    end = np.array([high for _, high in stretches], np.int64)
    told = HostStates(found, [0], start, end).pieces(0, start, end)
    return list(zip(told.start_ns.tolist(), told.end_ns.tolist(), told.event.tolist(), strict=True))


def test_the_innermost_event_is_the_one_that_started_last():
    found = trace(frame(0, 100), operator(10, 50), call(20, 10))
    assert pieces(found, (0, 120)) == [(0, 10, 0), (10, 20, 1), (20, 30, 2), (30, 60, 1), (60, 100, 0), (100, 120, -1)]


def test_events_that_cross_are_told_apart_to_the_nanosecond():
    found = trace(frame(0, 50), operator(30, 50), call(40, 5))
    assert pieces(found, (0, 90)) == [(0, 30, 0), (30, 40, 1), (40, 45, 2), (45, 80, 1), (80, 90, -1)]


def test_an_event_that_outlives_a_later_one_comes_to_light_again_only_while_it_lasts():
    found = trace(operator(0, 20), operator(10, 30), operator(15, 50))
    assert pieces(found, (0, 70)) == [(0, 10, 0), (10, 15, 1), (15, 65, 2), (65, 70, -1)]


def test_of_events_that_start_together_the_shorter_is_inside():
    assert pieces(trace(operator(0, 50), operator(0, 20)), (0, 50)) == [(0, 20, 1), (20, 50, 0)]


@pytest.mark.parametrize("outer", range(1, len(INNER_FIRST)))
@pytest.mark.parametrize("turned", [False, True])
def test_of_events_of_equal_times_the_kind_decides(outer, turned):
    events = [KINDS[INNER_FIRST[outer - 1]](0, 9, "b"), KINDS[INNER_FIRST[outer]](0, 9, "a")]
    assert pieces(trace(*(events[::-1] if turned else events)), (0, 9)) == [(0, 9, int(turned))]


def test_of_events_of_equal_times_and_kind_the_name_decides_then_the_row():
    assert pieces(trace(operator(0, 9, "b"), operator(0, 9, "a")), (0, 9)) == [(0, 9, 1)]
    assert pieces(trace(operator(0, 9, "a"), operator(0, 9, "a")), (0, 9)) == [(0, 9, 0)]


def test_events_without_length_other_threads_and_devices_cover_nothing():
    found = trace(operator(0, 10), call(5, 0), operator(0, 10, thread=2), kernel(2, 5))
    assert pieces(found, (0, 10)) == [(0, 10, 0)]


def test_stretches_are_cut_each_for_itself():
    found = trace(operator(0, 100))
    assert pieces(found, (0, 10), (10, 20), (90, 110)) == [(0, 10, 0), (10, 20, 0), (90, 100, 0), (100, 110, -1)]


def test_a_thread_without_events_covers_nothing():
    found = trace(operator(0, 100, thread=2), operator(0, 100))
    start, end = np.array([0]), np.array([50])
    assert HostStates(found, [1], start, end).pieces(0, start, end).event.tolist() == [-1]


shapes = st.tuples(st.integers(0, 25), st.integers(0, 12), st.sampled_from(INNER_FIRST), st.sampled_from("abc"))


def innermost_by_hand(events: list[tuple[int, int, Kind, str]], instant: int) -> int:
    covering = [
        (-start, start + length, INNER_FIRST.index(kind), name, row)
        for row, (start, length, kind, name) in enumerate(events)
        if start <= instant < start + length
    ]
    return min(covering)[-1] if covering else -1


@given(st.lists(shapes, min_size=1, max_size=12), st.sets(st.integers(0, 40), max_size=8))
def test_every_instant_has_the_event_that_the_definition_gives(events, bounds):
    found = trace(*(KINDS[kind](start, length, name) for start, length, kind, name in events))
    ends = sorted(bounds)
    stretches = list(zip(ends[::2], ends[1::2], strict=False))
    told = {instant: row for low, high, row in pieces(found, *stretches) for instant in range(low, high)}
    wanted = {instant for low, high in stretches for instant in range(low, high)}
    assert told == {instant: innermost_by_hand(events, instant) for instant in wanted}


def test_many_events_in_any_order_give_the_same_answer():
    chance = random.Random(7)
    events = [operator(chance.randrange(10_000), chance.randrange(1, 400), f"op{number}") for number in range(800)]
    stretches = [(low, low + 30) for low in range(0, 10_000, 50)]
    ordered = trace(*sorted(events, key=lambda event: float(event["ts"])))
    mixed = trace(*events)
    named = [
        [
            (start, end, row if row < 0 else found.names[found.name[row]])
            for start, end, row in pieces(found, *stretches)
        ]
        for found in (ordered, mixed)
    ]
    assert named[0] == named[1]
