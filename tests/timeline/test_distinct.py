import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from torchdiag.timeline.distinct import among, distinct, firsts, numbered

numbers = st.lists(st.integers(-20, 20) | st.integers(-(2**62), 2**62), max_size=20)


@given(numbers)
def test_each_value_is_the_distinct_one_of_its_number(values):
    array = np.array(values, np.int64)
    found, number = numbered(array)
    assert found.tolist() == sorted(set(values)) == distinct(array).tolist()
    assert found[number].tolist() == values


@given(numbers, numbers)
def test_among_is_membership(values, others):
    told = among(np.array(values, np.int64), np.array(others, np.int64))
    assert told.tolist() == [value in others for value in values]


@given(numbers)
def test_firsts_are_where_distinct_values_begin(values):
    ascending = sorted(values)
    places = firsts(np.array(ascending, np.int64)).tolist()
    assert places == [ascending.index(value) for value in sorted(set(values))]


def test_small_types_are_widened():
    assert distinct(np.array([3, -1, 3], np.int32)).dtype == np.int64
