import json
from decimal import Decimal
from time import time_ns

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdiag.capture.clock import ClockMap, ClockPair, microseconds, now_ns, read_pair


def test_a_pair_is_read_as_tightly_as_the_best_try():
    # Monotonic readings come in twos around a wall reading: 100 ns apart, then 10, then 50.
    monotonic = iter([1000, 1100, 2000, 2010, 3000, 3050])
    wall = iter([7_000_050, 7_001_005, 7_002_025])
    pair = read_pair(lambda: next(monotonic), lambda: next(wall), tries=3)
    assert pair == ClockPair(2005, 7_001_005, 5)
    assert pair.offset_ns == 6_999_000


def test_a_pair_needs_a_try():
    with pytest.raises(ValueError, match="tries"):
        read_pair(tries=0)


def test_the_line_goes_through_both_pairs_and_is_not_extended():
    # 1 s in which the wall clock gained 10 us.
    clock = ClockMap(ClockPair(0, 5_000_000_000, 0), ClockPair(1_000_000_000, 6_000_010_000, 0))
    assert clock.to_wall_ns(0) == 5_000_000_000
    assert clock.to_wall_ns(1_000_000_000) == 6_000_010_000
    assert clock.to_wall_ns(500_000_000) == 5_500_005_000
    assert clock.to_wall_ns(-7) == 5_000_000_000 - 7
    assert clock.to_wall_ns(1_000_000_005) == 6_000_010_005
    assert clock.to_trace_ns(500_000_000, 5_000_000_000) == 500_005_000
    assert not clock.stepped


def test_a_clock_that_was_set_is_told():
    assert ClockMap(ClockPair(0, 0, 0), ClockPair(10**9, 10**9 + 1_000_001, 0)).stepped
    assert not ClockMap(ClockPair(0, 0, 0), ClockPair(10**9, 10**9 + 1_000_000, 0)).stepped


def test_one_instant_is_enough():
    pair = ClockPair(100, 2000, 1)
    assert ClockMap(pair, pair).to_wall_ns(150) == 2050


@given(
    st.integers(0, 10**15),
    st.integers(1, 10**12),
    st.integers(-500, 500),
    st.lists(st.integers(-(10**12), 2 * 10**12), min_size=2),
)
def test_the_map_keeps_order_within_any_slew_that_clocks_have(start, elapsed, parts_per_million, stamps):
    drift = elapsed * parts_per_million // 1_000_000
    base = 1_700_000_000_000_000_000
    clock = ClockMap(ClockPair(start, base, 0), ClockPair(start + elapsed, base + elapsed + drift, 0))
    stamps = sorted(start + stamp for stamp in stamps)
    mapped = [clock.to_wall_ns(stamp) for stamp in stamps]
    assert mapped == sorted(mapped)
    for stamp, wall in zip(stamps, mapped, strict=True):
        assert min(0, drift) <= wall - (stamp - start) - base <= max(0, drift)


def test_the_real_clocks_agree_with_the_wall():
    clock = ClockMap(read_pair(), read_pair())
    before, stamp, after = time_ns(), now_ns(), time_ns()
    slack = 1_000 + clock.first.uncertainty_ns + clock.last.uncertainty_ns
    assert before - slack <= clock.to_wall_ns(stamp) <= after + slack


@given(st.integers(-(2**43 * 1000) + 1, 2**43 * 1000 - 1))
def test_microseconds_are_numbers_exact_to_the_nanosecond(ns):
    written = json.dumps(microseconds(ns))
    assert round(Decimal(written) * 1000) == ns


@given(st.integers(2**43 * 1000, 2**63 - 1), st.sampled_from([1, -1]))
def test_microseconds_beyond_a_double_are_exact_text(ns, sign):
    written = microseconds(sign * ns)
    assert isinstance(written, str)
    assert Decimal(written) * 1000 == sign * ns


def test_small_and_negative_microseconds():
    assert microseconds(0) == 0.0
    assert microseconds(1) == 0.001
    assert microseconds(-1) == -0.001
    assert microseconds(-1500) == -1.5
    assert microseconds(1_700_000_000_123_456_789) == "1700000000123456.789"
