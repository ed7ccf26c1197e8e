from reference.reader import trace_of
from written import Event, kernel, parsed

from torchdiag.trace import faults
from torchdiag.trace.columns import Trace

DAY = 86_400_000_000_000
FAR = 2**62


def trace(*events: Event) -> Trace:
    return trace_of(parsed(list(events)), {})


def without(event: Event, key: str) -> Event:
    return {name: value for name, value in event.items() if name != key}


def test_durations_below_0_are_faults_and_missing_ones_are_not():
    found = trace(
        kernel(5, -1), without(kernel(5, 5), "dur"), without(kernel(5, -1), "ts"), dict(kernel(5, -1), ph="i")
    )
    assert faults.negative_durations(found).tolist() == [0]


def test_time_0_is_a_fault_when_the_middle_event_is_more_than_a_day_later():
    assert faults.zero_timestamps(trace(kernel(0, 1), kernel(DAY + 1, 1))).tolist() == [0]
    assert faults.zero_timestamps(trace(kernel(0, 1), kernel(DAY, 1))).tolist() == []
    assert faults.zero_timestamps(trace(kernel(0, 1), kernel(0, 1), kernel(DAY + 1, 1))).tolist() == []
    assert faults.zero_timestamps(trace(kernel(1, 1), kernel(DAY + 1, 1))).tolist() == []


def test_times_that_64_bits_cannot_subtract_are_faults():
    fair = [kernel(-FAR + 1, 1), kernel(FAR - 2, 1), kernel(-5, FAR), kernel(0, FAR - 1)]
    assert faults.out_of_reach(trace(*fair)).tolist() == []
    beyond = [kernel(-FAR, 1), kernel(FAR, 0), kernel(FAR - 1, 1), kernel(0, FAR), kernel(FAR + 5, FAR + 5)]
    assert sorted(faults.out_of_reach(trace(*beyond)).tolist()) == [0, 1, 2, 3, 4]
    assert trace(*beyond).kind.tolist() == [0] * 5


def test_a_trace_without_rows_has_no_faults():
    for find in (faults.negative_durations, faults.zero_timestamps, faults.out_of_reach, faults.other_clocks):
        assert find(trace()).tolist() == []


def test_events_of_another_clock_are_faults_and_the_larger_group_stays():
    long_ago = [kernel(5, 1), kernel(9, 1)]
    now = [kernel(3 * DAY, 1), kernel(3 * DAY + 7, 1), kernel(4 * DAY, 1)]
    assert faults.other_clocks(trace(*long_ago, *now)).tolist() == [0, 1]
    assert faults.other_clocks(trace(*now)).tolist() == []
    assert faults.other_clocks(trace(now[0], long_ago[0], now[1], long_ago[1], now[2])).tolist() == [1, 3]
