"""Rows are in one group exactly when they are equal in every column."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from torchdiag._native.groups import groups

ROWS = st.lists(st.tuples(st.integers(-1, 2), st.integers(-(2**31), 2**31 - 1) | st.integers(0, 1)), max_size=60)


@given(ROWS)
def test_groups_are_numbered_as_a_dictionary_would(rows: list[tuple[int, int]]) -> None:
    table = np.array(rows, np.int32).reshape(len(rows), 2)
    group, first = groups([table[:, 0], table[:, 1]])
    numbers: dict[tuple[int, int], int] = {}
    assert group.tolist() == [numbers.setdefault(row, len(numbers)) for row in rows]
    assert first.tolist() == [rows.index(row) for row in numbers]


def test_more_groups_than_the_table_begins_with_are_kept_apart() -> None:
    column = np.arange(5_000, dtype=np.int32) % 3_000
    group, first = groups([column, np.zeros(5_000, np.int32)])
    assert group.tolist() == column.tolist()
    assert first.tolist() == list(range(3_000))
