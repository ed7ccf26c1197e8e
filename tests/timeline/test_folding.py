"""Stretches of one event are gathered, and nothing is lost by it."""

import numpy as np
from hand import trace
from written import annotation, frame, operator

from torchdiag.timeline.charges import Charges
from torchdiag.timeline.folding import folded
from torchdiag.timeline.result import Cause

CAUSES = list(Cause)
EVENTS = trace(operator(0, 90), frame(0, 90), annotation(0, 90, "a"))


def charges(*stretches):
    """Charges from (start, end, cause, event)."""
    start, end, cause, event = zip(*stretches, strict=True)
    number = np.arange(len(stretches))
    return Charges(
        start_ns=np.array(start),
        end_ns=np.array(end),
        cause=np.array([CAUSES.index(item) for item in cause], np.uint8),
        event=np.array(event),
        launch=number * 10,
        track=np.zeros(len(stretches), np.int32),
        gap=number,
    )


def seen(sums):
    columns = (sums.charges.start_ns, sums.charges.event, sums.charges.launch, sums.idle_ns, sums.count)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_stretches_of_one_event_become_the_first_of_them():
    found = folded(
        EVENTS,
        charges(
            (0, 10, Cause.FRAMEWORK, 0),
            (10, 13, Cause.PYTHON, 1),
            (20, 25, Cause.FRAMEWORK, 0),
        ),
    )
    assert seen(found) == [(0, 0, 0, 15, 2), (10, 1, 10, 3, 1)]


def test_data_loading_stays_apart():
    found = folded(
        EVENTS, charges((0, 10, Cause.DATALOADER, 1), (10, 13, Cause.PYTHON, 1), (20, 25, Cause.DATALOADER, 1))
    )
    assert seen(found) == [(0, 1, 0, 15, 2), (10, 1, 10, 3, 1)]


def test_annotations_and_what_has_no_event_stay_alone():
    found = folded(
        EVENTS,
        charges(
            (0, 10, Cause.PYTHON, 2),
            (10, 13, Cause.PYTHON, 2),
            (20, 25, Cause.QUEUED, -1),
            (30, 35, Cause.QUEUED, -1),
        ),
    )
    assert seen(found) == [(0, 2, 0, 10, 1), (10, 2, 10, 3, 1), (20, -1, 20, 5, 1), (30, -1, 30, 5, 1)]


def test_no_stretches_are_no_stretches():
    nothing = charges((0, 10, Cause.PYTHON, 1))
    empty = Charges(*(getattr(nothing, name)[:0] for name in Charges.__slots__))
    assert len(folded(EVENTS, empty).charges) == 0
