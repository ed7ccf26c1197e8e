"""Laws of the replay, on traces that nobody thought of."""

import numpy as np
import strategies
from hypothesis import given
from hypothesis import strategies as st
from reference.reader import trace_of
from written import parsed

from torchdiag.timeline import intervals
from torchdiag.timeline import steps as step_tables
from torchdiag.timeline.changes import Change
from torchdiag.timeline.partition import partition
from torchdiag.timeline.replay import Replay
from torchdiag.trace.vocabulary import Kind

HOST = (Kind.OPERATOR, Kind.PYTHON, Kind.ANNOTATION, Kind.RUNTIME, Kind.OVERHEAD)
DEVICE = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)


def replay_of(trace):
    found = partition(trace)
    table, _ = step_tables.steps(trace, found.activities, found.selected)
    return Replay.of(trace, found, table), found


@st.composite
def changes(draw, trace):
    """A removal of some rows of the trace."""
    scales = st.sampled_from((0.0, 0.25, 0.5, 1.0))

    def some(kinds):
        rows = np.flatnonzero(np.isin(trace.kind, kinds)).tolist()
        return np.array(draw(st.lists(st.sampled_from(rows), max_size=6)) if rows else [], np.int64)

    return Change(
        unblocked=some((Kind.RUNTIME,)),
        shortened=some(HOST),
        host_scale=draw(scales),
        removed=some(DEVICE),
        scaled=some(DEVICE),
        device_scale=draw(scales),
    )


@given(strategies.traces())
def test_nothing_changed_gives_the_measured_times(events):
    """A step lasts to the start of the next, the last one to the end of the marks or of the work launched by then."""
    trace = trace_of(parsed(events), {})
    replay, found = replay_of(trace)
    assert replay.steps_ns([]).tolist() == replay.steps_measured_ns.tolist()
    assert int(replay.paces_ns([]).sum()) == int(replay.steps_measured_ns.sum())
    if len(found.marks):
        start = np.sort(trace.ts_ns[found.marks])
        ends = [device.window.end_ns for device in found.devices]
        last = max([*ends, *(trace.ts_ns[found.marks] + trace.dur_ns[found.marks]).tolist()])
        assert replay.steps_measured_ns.tolist() == np.diff(np.append(start, last)).tolist()


@given(st.data(), strategies.traces())
def test_taking_something_away_never_costs_time(data, events):
    trace = trace_of(parsed(events), {})
    replay, found = replay_of(trace)
    first = data.draw(changes(trace))
    one, both = replay.steps_ns([first]), replay.steps_ns([first, data.draw(changes(trace))])
    assert np.all(np.cumsum(one) <= np.cumsum(replay.steps_measured_ns))
    assert np.all(np.cumsum(both) <= np.cumsum(one))
    assert np.all(both >= 0)
    pace = replay.paces_ns([first])
    assert int(pace.sum()) == int(one.sum()) and np.all(pace >= 0)
    assert np.all(replay.device_idle_ns([first]) >= 0)

    host = Change(
        unblocked=np.flatnonzero(trace.kind == Kind.RUNTIME), shortened=np.flatnonzero(np.isin(trace.kind, HOST))
    )
    left = int(replay.steps_ns([host]).sum())
    for device in found.devices:
        # A device is as busy as before, with all that counts: without marks, all there is.
        here = device.activities
        busy = intervals.length(*intervals.union(here.start_ns, here.end_ns))
        assert found.selected.size or left >= busy
        assert device.window.source == "steps" or busy + device.states.idle == device.window.length_ns
