import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from torchdiag.timeline import intervals

pairs = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12)


def arrays(found: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of (start, length) pairs, by start."""
    found = sorted(found)
    start = np.array([start for start, _ in found], np.int64)
    return start, start + np.array([length for _, length in found], np.int64)


def instants(start: np.ndarray, end: np.ndarray) -> set[int]:
    return {instant for low, high in zip(start.tolist(), end.tolist(), strict=True) for instant in range(low, high)}


def test_intervals_that_touch_are_one_and_those_without_length_are_none():
    start, end = intervals.union(np.array([0, 5, 7, 20]), np.array([5, 6, 7, 22]))
    assert (start.tolist(), end.tolist()) == ([0, 20], [6, 22])


@given(pairs)
def test_a_union_covers_what_its_intervals_cover_once(found):
    start, end = intervals.union(*arrays(found))
    assert instants(start, end) == instants(*arrays(found))
    assert intervals.length(start, end) == len(instants(start, end))
    assert np.all(start[1:] > end[:-1])


@given(pairs)
def test_a_stretch_is_its_intervals_and_what_lies_between(found):
    start, end = intervals.union(*arrays(found))
    free = intervals.between(start, end, 0, 50)
    assert instants(*free) == set(range(50)) - instants(start, end)
    assert np.all(free[1] > free[0])


@given(pairs, st.sets(st.integers(0, 40)))
def test_cut_pieces_make_up_their_intervals_and_hold_no_bound_inside(found, bounds):
    start, end = arrays(found)
    piece_start, piece_end, whole = intervals.cut(start, end, np.array(sorted(bounds), np.int64))
    for number, (low, high) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        mine = whole == number
        borders = [*piece_start[mine].tolist(), int(piece_end[mine][-1])]
        assert borders == [low, *sorted(bound for bound in bounds if low < bound < high), high]
        assert piece_end[mine].tolist() == borders[1:]


@given(pairs, st.lists(st.integers(-2, 45), max_size=9))
def test_inside_names_the_interval_that_holds_an_instant(found, questions):
    start, end = intervals.union(*arrays(found))
    told = intervals.inside(start, end, np.array(questions, np.int64)).tolist()
    for instant, number in zip(questions, told, strict=True):
        holders = [place for place in range(len(start)) if start[place] <= instant < end[place]]
        assert [number] == (holders or [-1])
