"""The permutation test against hand-computed values and a slow reference."""

from fractions import Fraction
from itertools import chain, combinations, product
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchdiag.suite import permutation

# Lists of processes, each a list of steps.
BY_HAND = [
    # Two of each: of the 6 ways to deal {1,2}, {3,4}, {5,6}, {7,8}, two are as extreme: p = 2/6.
    ([[1, 2], [3, 4]], [[5, 6], [7, 8]], 1.0, 2 / 6),
    # Nothing differs: every deal is as far from a half.
    ([[5, 5], [5, 5]], [[5, 5], [5, 5]], 0.5, 1.0),
    # b is slower in 3 of 4 pairs (2 > 1, 4 > 1, 4 > 3; 2 < 3), one process each: nothing can be told.
    ([[1, 3]], [[2, 4]], 0.75, 1.0),
    # Three against three, all apart: 2 of 20 deals.
    ([[1], [2], [3]], [[4], [5], [6]], 1.0, 0.1),
    # Ties are halves: pairs (1,1) = 1/2, (1,2) = 1 over two pairs.
    ([[1]], [[1, 2]], 0.75, 1.0),
]


@pytest.mark.parametrize(("a", "b", "superiority", "p"), BY_HAND)
def test_by_hand(a, b, superiority, p):
    found = permutation.compare(a, b)
    assert found.superiority == pytest.approx(superiority)
    assert found.p == pytest.approx(p)


def test_the_ratio_is_the_median_over_all_pairs():
    # b / a: 10/10, 10/20, 40/10, 40/20 -> 0.5, 1, 2, 4: median 1.5.
    assert permutation.compare([[10, 20]], [[10, 40]]).ratio == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("a", "b", "least"), [(1, 1, 1.0), (2, 2, 1 / 3), (3, 3, 0.1), (4, 4, 2 / 70), (5, 5, 2 / 252)]
)
def test_few_processes_cannot_reach_a_small_p(a, b, least):
    assert permutation.least_p(a, b) == pytest.approx(least)
    apart = permutation.compare([[1 + number] for number in range(a)], [[100 + number] for number in range(b)])
    assert apart.p == pytest.approx(least)


def slow(a, b):
    """The definition, in exact fractions."""
    everyone = [*a, *b]

    def superiority(of_a):
        pairs = list(
            product(
                [step for place in of_a for step in everyone[place]],
                [step for place in range(len(everyone)) if place not in of_a for step in everyone[place]],
            )
        )
        return Fraction(sum(2 * (y > x) + (y == x) for x, y in pairs), 2 * len(pairs))

    observed = superiority(range(len(a)))
    deals = [superiority(deal) for deal in combinations(range(len(everyone)), len(a))]
    half = Fraction(1, 2)
    return observed, Fraction(sum(abs(deal - half) >= abs(observed - half) for deal in deals), len(deals))


processes = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=3), min_size=1, max_size=3)


@given(processes, processes)
@settings(max_examples=60)
def test_it_is_what_the_definition_says(a, b):
    found = permutation.compare(a, b)
    superiority, p = slow(a, b)
    assert found.superiority == pytest.approx(float(superiority))
    assert found.p == pytest.approx(float(p))
    ratios = [y / x for x in chain(*a) for y in chain(*b)]
    assert found.ratio == pytest.approx(median(ratios))
    back = permutation.compare(b, a)
    assert back.p == pytest.approx(found.p)
    assert back.superiority == pytest.approx(1 - found.superiority)


def test_many_processes_are_dealt_by_chance_and_always_alike():
    a = [[100 + number, 103] for number in range(12)]
    b = [[104 + number, 107] for number in range(12)]
    first = permutation.compare(a, b)
    assert first == permutation.compare(a, b)
    assert 0 < first.p < 0.05
