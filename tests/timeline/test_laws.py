"""What must hold of the partition of any trace, and that it is the one that the slow reference finds."""

import gzip
import tempfile
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st
from reference.agreement import figures
from reference.partition import partition
from reference.reader import trace_of
from strategies import THREADS, Clock, clocks, host_events, layouts, traces
from written import Event, call, json_text, microseconds, parsed

from torchdiag.errors import TorchdiagError
from torchdiag.timeline.analysis import analyse
from torchdiag.trace.load import load
from torchdiag.trace.vocabulary import Kind

NEAR = st.sampled_from((Clock(0, 333), Clock(0, 20_000), Clock(0, 400_000)))
ELSEWHERE = max(THREADS) + 1


def analysed(events: list[Event], **selection):
    """The figures of a trace that has any event to speak of, without the fast reader."""
    trace = trace_of(parsed(events), {})
    assume((trace.kind != Kind.OTHER).any())
    return figures(analyse(trace, **selection))


def named_apart(events: list[Event]) -> list[Event]:
    """The calls under names of their own, so that no choice is left to the order of the file."""
    return [
        dict(item, name=f"{number}{item['name']}") if item.get("cat") == "cuda_runtime" else item
        for number, item in enumerate(events)
    ]


@given(traces())
def test_the_slow_reference_finds_the_same(events):
    assert analysed(events) == partition(parsed(events))


@given(traces(stepped=True), st.integers(0, 2), st.integers(1, 3))
def test_the_slow_reference_finds_the_same_in_selected_steps(events, first, count):
    try:
        expected = partition(parsed(events), steps=slice(first, first + count))
    except ValueError:
        assume(False)
    assert analysed(events, steps=f"{first}:{first + count}") == expected


@given(traces(clock=NEAR), st.integers(0, 40), st.integers(1, 40))
def test_the_slow_reference_finds_the_same_in_a_window(events, first, count):
    unit = 20_000
    start, end = first * unit, (first + count) * unit
    try:
        found = analysed(events, window=f"{start}:{end}")
    except TorchdiagError:
        assume(False)
    assert found == partition(parsed(events), window=(start, end))


@given(traces())
def test_everything_sums_to_the_window(events):
    for device in analysed(events).values():
        length = device.window[1] - device.window[0]
        assert sum(device.states.values()) == length
        assert sum(device.idle.values()) == device.states["idle"]
        assert sum(device.headline.values()) == length
        assert min(*device.states.values(), *device.idle.values(), *device.headline.values()) >= 0


@given(traces(legacy=False), st.randoms())
def test_the_order_of_events_does_not_matter(events, random):
    events = named_apart(events)
    other = list(events)
    random.shuffle(other)
    assert analysed(events) == analysed(other)


@given(traces(clock=NEAR), st.integers(1, 2 * 10**18))
def test_a_shift_in_time_changes_nothing_but_the_window(events, shift):
    shifted = [
        dict(item, ts=microseconds(round(float(item["ts"]) * 1000) + shift)) if "ts" in item else item
        for item in events
    ]
    found = analysed(events)
    moved = analysed(shifted)
    assert found.keys() == moved.keys()
    for device, here in found.items():
        there = moved[device]
        assert there.window == (here.window[0] + shift, here.window[1] + shift)
        assert (there.source, there.states, there.idle) == (here.source, here.states, here.idle)


@given(traces(), layouts, st.booleans(), st.booleans())
def test_layout_and_packing_change_nothing(events, layout, packed, bare):
    text = json_text(events, layout, bare=bare).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(gzip.compress(text, 1) if packed else text)
        trace = load(path)
        assume((trace.kind != Kind.OTHER).any())
        assert figures(analyse(trace)) == analysed(events) == figures(analyse(load(path)))


@given(traces(legacy=False, clock=NEAR), st.data())
def test_another_thread_that_launches_nothing_changes_nothing(events, data):
    clock = Clock(0, 20_000)
    others = data.draw(st.lists(host_events(clock, st.just(ELSEWHERE)), min_size=1, max_size=5))
    quiet = [item for item in others if not item["name"].endswith(("Synchronize", "Memcpy"))]
    assert analysed(events + quiet) == analysed(events)


@given(clocks)
def test_a_trace_of_calls_alone_has_no_devices(clock):
    assert analysed([call(clock.at(1), clock.unit, 1)]) == {}
