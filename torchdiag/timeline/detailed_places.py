"""The numbers of one recording with the places of another of the same steps.

Recording stacks slows the host down, so what they cost is measured without them; where it comes from is told by a
second recording that has them. Its times are brought to the scale of the first one's.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from torchdiag.timeline.places import merged
from torchdiag.timeline.result import Breakdown, DeviceBreakdown, HostBreakdown, IdleCause, Place
from torchdiag.trace.quality import Quality

TOLD_BY_DETAIL: Final = frozenset({"no-stacks", "no-shapes"})
SCALED: Final = Quality(
    "places-scaled",
    "Source lines are from a second recording, with stacks, of other steps of this run; their times are scaled to the "
    "first one's.",
)


def with_places(numbers: Breakdown, detail: Breakdown, top: int | None) -> Breakdown:
    """`numbers` with the places of `detail` (which lists all of its own), at most `top` for each cause.

    A cause keeps its own places where the other recording has none of it. The places of a cause never sum to more than
    its time; they name no event, for that would be one of the other trace.
    """
    others = {device.id: device for device in detail.devices}
    host = numbers.host
    if host is not None and detail.host is not None:
        host = _host(host, detail.host, (len(numbers.steps), len(detail.steps)), top)
    return replace(
        numbers,
        trace=replace(
            numbers.trace,
            quality=(*(note for note in numbers.trace.quality if note.code not in TOLD_BY_DETAIL), SCALED),
        ),
        devices=tuple(
            _device(device, others[device.id], top) if device.id in others else device for device in numbers.devices
        ),
        host=host,
    )


def _device(device: DeviceBreakdown, other: DeviceBreakdown, top: int | None) -> DeviceBreakdown:
    told = {cause.cause: cause for cause in other.causes}
    return replace(device, causes=tuple(_cause(cause, told[cause.cause], top) for cause in device.causes))


def _cause(cause: IdleCause, other: IdleCause, top: int | None) -> IdleCause:
    if not cause.idle_ns or not other.idle_ns:
        return cause
    found = _scaled(other.places, (cause.idle_ns, other.idle_ns), (cause.count, other.count))
    return replace(cause, places=tuple(found[:top]))


def _host(host: HostBreakdown, other: HostBreakdown, steps: tuple[int, int], top: int | None) -> HostBreakdown:
    """Operators keep the share they have without stacks, and so does the rest."""
    count = steps if all(steps) else (1, 1)
    operators = [place for place in other.places if place.operator is not None]
    rest = [place for place in other.places if place.operator is None]
    found = [
        *_scaled(operators, (host.operator_ns, sum(place.idle_ns for place in operators)), count),
        *_scaled(rest, (_beside_operators(host), sum(place.idle_ns for place in rest)), count),
    ]
    return replace(host, places=tuple(merged(found)[:top])) if found else host


def _beside_operators(host: HostBreakdown) -> int:
    return host.runtime_ns + host.python_ns + host.dataloader_ns


def _scaled(places: Sequence[Place], time: tuple[int, int], count: tuple[int, int]) -> list[Place]:
    (to_ns, from_ns), (to_count, from_count) = time, count
    return [
        replace(
            place,
            idle_ns=place.idle_ns * to_ns // from_ns,
            count=max(place.count * to_count // from_count, 1) if from_count else place.count,
            event=None,
        )
        for place in places
        if from_ns and place.idle_ns * to_ns // from_ns
    ]
