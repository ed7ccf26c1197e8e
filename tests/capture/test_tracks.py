import json
from collections import defaultdict
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from torchdiag.capture.clock import ClockMap, ClockPair
from torchdiag.capture.exception_records import (
    ExceptionSlice,
    ExceptionSummary,
    Outcome,
    RecorderCost,
    Site,
    StepExceptions,
)
from torchdiag.capture.gc_recorder import Collection, GcSummary, GenerationSum, StepCollections
from torchdiag.capture.lanes import lanes
from torchdiag.capture.throw_probe import CppThrow
from torchdiag.capture.throw_recorder import StepThrows, ThrowSite, ThrowSummary
from torchdiag.capture.tracks import to_trace_events
from torchdiag.capture.warnings_recorder import StepWarnings, WarningSite, WarningsSummary

# The monotonic clock shows 0 when the wall shows 5 s.
CLOCK = ClockMap(ClockPair(0, 5_000_000_000, 0), ClockPair(10**9, 6_000_000_000, 0))
HERE, THERE = Site("a.py", 1, "f"), Site("b.py", 2, "g")

spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)).map(lambda s: (s[0], s[0] + s[1])), max_size=15)


def crosses(a, b):
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


@given(spans)
def test_no_two_spans_of_a_lane_cross(items):
    chosen = lanes(items)
    by_lane = defaultdict(list)
    for span, lane in zip(items, chosen, strict=True):
        by_lane[lane].append(span)
    assert sorted(by_lane) == list(range(len(by_lane)))
    for members in by_lane.values():
        assert not any(crosses(a, b) for a in members for b in members)


@given(spans)
def test_one_lane_is_enough_where_nothing_crosses(items):
    if not any(crosses(a, b) for a in items for b in items):
        assert set(lanes(items)) <= {0}


def exception(start, end, thread_id=11, step=0):
    return ExceptionSlice(start, end, thread_id, step, "ValueError", HERE, THERE, Outcome.HANDLED)


def exceptions(*slices, steps=()):
    return ExceptionSummary("m", steps, (), slices, 0, 0, False, RecorderCost(0, 0), CLOCK)


def test_slices_are_on_named_tracks_in_the_traces_clock():
    events = to_trace_events(
        pid=7,
        base_ns=4_999_999_000,
        clock=CLOCK,
        exceptions=exceptions(exception(1001, 2503), exception(500, 700, thread_id=12)),
    )
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    slices = {names[event["tid"]]: event for event in events if event["ph"] == "X"}
    first = slices["Python exceptions, thread 11"]
    assert (first["ts"], first["dur"]) == (2.001, 1.502)
    assert (first["pid"], first["cat"], first["name"]) == (7, "torchdiag", "ValueError")
    assert first["args"] == {"raised at": "a.py:1:f", "handled at": "b.py:2:g", "outcome": "handled", "step": 0}
    second = slices["Python exceptions, thread 12"]
    assert (second["ts"], second["dur"]) == (1.5, 0.2)


def test_crossing_slices_get_tracks_of_their_own():
    summary = exceptions(exception(0, 10), exception(5, 15), exception(6, 9))
    events = to_trace_events(pid=7, base_ns=0, clock=CLOCK, exceptions=summary)
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert list(names.values()) == ["Python exceptions, thread 11", "Python exceptions, thread 11 (2)"]
    assert len({event["args"]["sort_index"] for event in events if event["name"] == "thread_sort_index"}) == 2
    on = defaultdict(int)
    for event in events:
        if event["ph"] == "X":
            on[names[event["tid"]]] += 1
    assert sorted(on.values()) == [1, 2]


def test_a_counter_stands_at_the_count_of_its_step_and_ends_at_none():
    steps = (
        StepExceptions(0, 0, 1000, (), 3),
        StepExceptions(1, 1000, 2500, (), 0),
    )
    events = to_trace_events(pid=7, base_ns=5_000_000_000, clock=CLOCK, exceptions=exceptions(steps=steps))
    counts = [(event["ts"], event["args"]["count"]) for event in events if event["ph"] == "C"]
    assert counts == [(0.0, 3), (1.0, 0), (2.5, 0)]
    assert {event["name"] for event in events} == {"Python exceptions per step"}


def test_every_kind():
    throws = ThrowSummary(
        (StepThrows(0, 0, 100, (ThrowSite("T", "l.so", "s", 2, 1, 20),)),),
        (),
        (CppThrow(10, 30, 11, "T", "l.so", 16, "s"), CppThrow(40, None, 11, "T", "", 0, "")),
        2,
        0,
        CLOCK,
    )
    collections = GcSummary(
        (StepCollections(0, 0, 100, (GenerationSum(2, 1, 5, 5, 3, 0),)),),
        (),
        (Collection(50, 55, 11, 0, 2, 3, 0),),
        0,
        CLOCK,
    )
    warned = WarningsSummary((StepWarnings(0, 0, 100, (WarningSite("W", HERE, 4, 1),), 1),), (), 0, False)
    events = to_trace_events(
        pid=7, base_ns=0, clock=CLOCK, throws=throws, collections=collections, warnings=warned, exceptions=exceptions()
    )
    assert json.loads(json.dumps(events)) == events
    assert all(event["pid"] == 7 for event in events)
    slices = [event for event in events if event["ph"] == "X"]
    assert [(event["name"], event["dur"]) for event in slices] == [
        ("T", 0.02),
        ("T", 0.0),
        ("Python GC generation 2", 0.005),
    ]
    assert slices[0]["args"]["library offset"] == "0x10"
    assert [event["args"]["caught"] for event in slices[:2]] == [True, False]
    counters = {event["name"]: event["args"]["count"] for event in reversed(events) if event["ph"] == "C"}
    assert counters == {"C++ exceptions per step": 2, "Garbage collections per step": 1, "Warnings per step": 5}


def test_nothing_recorded_writes_nothing():
    assert to_trace_events(pid=1, base_ns=0, clock=CLOCK) == []
    assert to_trace_events(pid=1, base_ns=0, clock=CLOCK, exceptions=exceptions()) == []


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**4)), max_size=12), st.integers(0, 6 * 10**9))
def test_no_track_has_crossing_slices_to_the_last_digit(items, base):
    summary = exceptions(*(exception(start, start + took) for start, took in items))
    events = to_trace_events(pid=1, base_ns=base, clock=CLOCK, exceptions=summary)
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            start = Decimal(str(event["ts"]))
            tracks[event["tid"]].append((start, start + Decimal(str(event["dur"]))))
    assert sum(map(len, tracks.values())) == len(items)
    for members in tracks.values():
        assert not any(crosses(a, b) for a in members for b in members)
