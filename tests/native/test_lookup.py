"""Looking up in ascending arrays gives what numpy's own search gives, in whatever order the questions come."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from torchdiag._native import lookup

NUMBERS = st.lists(st.integers(-(2**62), 2**62) | st.integers(-5, 5), max_size=40)


@given(NUMBERS, NUMBERS)
def test_places_are_those_of_searchsorted(keys: list[int], wanted: list[int]) -> None:
    ascending, asked = np.sort(np.array(keys, np.int64)), np.array(wanted, np.int64)
    assert lookup.places(ascending, asked).tolist() == np.searchsorted(ascending, asked).tolist()


@given(st.dictionaries(st.integers(0, 60) | st.integers(0, 2**32 - 1), st.integers(-9, 9), max_size=40), NUMBERS)
def test_values_are_those_of_a_dictionary(held: dict[int, int], wanted: list[int]) -> None:
    rows = np.array(sorted(held), np.uint32)
    asked = np.array([*wanted, *held], np.int64)
    for dtype in (np.int64, np.int32, np.float64):
        values = np.array([held[row] for row in sorted(held)], dtype)
        found = lookup.values_at(rows, values, asked, np.array([-100], dtype))
        assert found.dtype == dtype
        assert found.tolist() == [held.get(row, -100) for row in asked.tolist()]


def test_rows_of_any_type_can_be_asked_for() -> None:
    rows, values = np.array([2, 5, 7], np.uint32), np.array([20, 50, 70], np.int64)
    for dtype in (np.uint32, np.int32, np.int64):
        asked = np.array([7, 0, 5, 2, 5], dtype)[::-1]
        assert lookup.values_at(rows, values, asked, np.array([-1])).tolist() == [50, 20, 50, -1, 70]


def test_kinds_are_told_by_category_where_the_event_is_complete() -> None:
    category = np.array([0, 1, -1, 0, 0, 0], np.int32)
    phase = np.frombuffer(b"XXXiXX", np.uint8)
    start = np.array([5, 5, 5, 5, np.iinfo(np.int64).min, 5], np.int64)
    duration = np.array([1, 0, 1, 1, 1, -1], np.int64)
    kinds = lookup.kinds(category, phase, (start, duration), np.array([9, 3, 4], np.uint8), ord("X"))
    assert kinds.tolist() == [3, 4, 9, 0, 0, 0]
