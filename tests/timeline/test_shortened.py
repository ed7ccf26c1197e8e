"""What a change shortens: events, runs of events, and what was recorded beside the profiler, on its own thread."""

import numpy as np
from reference import reader
from written import Event, event, mark, operator, parsed

from torchdiag.diagnosis.gains import saved_ns
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import operators
from torchdiag.timeline.recorded import rows_of

STEP = 1_000_000


def facts(*more: Event) -> Facts:
    events = [mark(number, number * STEP, STEP) for number in range(3)]
    events += [operator(number * STEP + at, 50_000) for number in range(3) for at in (100_000, 300_000)]
    return Facts.of(reader.trace_of(parsed([*events, *more]), {}))


def test_a_run_shrinks_with_what_lies_between_its_events():
    known = facts()
    rows = operators(known.trace, "aten::mm").reshape(-1, 2)
    assert saved_ns(known, [Change(shortened=rows.ravel())]) == 100_000
    assert saved_ns(known, [Change(runs=rows)]) == 250_000
    assert saved_ns(known, [Change(runs=rows, host_scale=0.2)]) == 200_000
    assert saved_ns(known, [Change(runs=rows, shortened=rows.ravel())]) == 250_000


def test_an_exception_is_time_of_the_thread_that_it_was_raised_on():
    track = 1_900_000_000
    told = {"ph": "M", "name": "thread_name", "pid": 100, "tid": track, "args": {"name": "C++ exceptions, thread 1"}}
    thrown = [
        event("torchdiag", "c10::Error", number * STEP + 500_000, 30_000, (100, track), {}) for number in range(3)
    ]
    known = facts(told, *thrown)
    rows = rows_of(known.trace, "throw")
    assert len(rows) == 3
    assert not len(rows_of(known.trace, "exception"))
    assert saved_ns(known, [Change(shortened=rows)]) == 30_000
    assert saved_ns(known, [Change(shortened=rows, runs=np.empty((0, 2), np.int64))]) == 30_000
