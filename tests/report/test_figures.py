import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdiag.report.figures import apportion, count, counted, duration, percent, rough_percent, size


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (7, "7 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (12_340, "12.3 µs"),
        (123_400, "123 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (612_400_000, "612 ms"),
        (1_500_000_000, "1.50 s"),
        (999_400_000_000, "999 s"),
        (999_500_000_000, "16.7 min"),
        (4_321_000_000_000, "72.0 min"),
        (36_000_000_000_000, "10.0 h"),
        (22_958_787 * 10**9, "266 d"),
        (-1_500, "-1.50 µs"),
    ],
)
def test_times_have_three_digits_and_a_unit(nanoseconds, text):
    assert duration(nanoseconds) == text


@given(st.integers(1_000, 10**15))
def test_times_are_right_to_half_a_percent(nanoseconds):
    number, unit = duration(nanoseconds).split()
    seconds = {"µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400}[unit]
    assert float(number) * seconds * 1e9 == pytest.approx(nanoseconds, rel=0.0051)
    assert len(number.replace(".", "")) == 3


def test_sizes_and_counts():
    assert size(0) == "0 B"
    assert size(616) == "616 B"
    assert size(154_000_000) == "154 MB"
    assert count(73_639) == "73,639"
    assert counted(1, "step") == "1 step"
    assert counted(2, "copy", "copies") == "2 copies"


@given(st.lists(st.integers(0, 10**18), max_size=20), st.integers(0, 2000))
def test_shares_sum_to_the_whole_and_are_within_one_unit(parts, units):
    shares = apportion(parts, units)
    total = sum(parts)
    assert sum(shares) == (units if total else 0)
    for part, share in zip(parts, shares, strict=True):
        assert abs(share * total - part * units) < max(total, 1)


def test_thirds_sum_to_a_hundred():
    assert apportion([1, 1, 1], 1000) == [334, 333, 333]


def test_percentages_never_hide_what_is_there():
    assert percent(382) == "38.2 %"
    assert percent(0) == "0.0 %"
    assert percent(0, something=True) == "<0.1 %"
    assert rough_percent(1, 3) == "33 %"
    assert rough_percent(1, 30) == "3.3 %"
    assert rough_percent(1, 10**6) == "under 0.1 %"
    assert rough_percent(999_999, 10**6) == "99.9 %"
    assert rough_percent(10, 10) == "100 %"
    assert rough_percent(0, 10) == "0 %"
