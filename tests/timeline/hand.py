"""What tests of this folder share: a trace from written events, and its charges in words."""

from reference.reader import trace_of
from written import Event, parsed

from torchdiag.timeline.partition import partition
from torchdiag.timeline.result import Cause
from torchdiag.trace.columns import Trace

CAUSES = [cause.value for cause in Cause]


def trace(*events: Event, **top_level: object) -> Trace:
    return trace_of(parsed(list(events)), top_level)


def charged(*events: Event, device: int = 0, **selection: str) -> list[tuple[int, int, str]]:
    """The charges of a device as (start, end, cause), neighbours of one cause as one."""
    (found,) = partition(trace(*events), device=device, **selection).devices
    told: list[tuple[int, int, str]] = []
    for start, end, cause in zip(found.charges.start_ns, found.charges.end_ns, found.charges.cause, strict=True):
        joins = bool(told) and told[-1][1:] == (start, CAUSES[cause])
        told.append((told.pop()[0] if joins else int(start), int(end), CAUSES[cause]))
    return told
