"""From a trace to its breakdown: the facts of this room put together."""

from typing import Literal

import numpy as np

from torchdiag.errors import TorchdiagError
from torchdiag.timeline import device_names, host_only, places
from torchdiag.timeline import health as healths
from torchdiag.timeline import partition as partitions
from torchdiag.timeline import steps as step_tables
from torchdiag.timeline import summary as summaries
from torchdiag.timeline.beside import Beside
from torchdiag.timeline.partition import Partition
from torchdiag.timeline.result import Breakdown, DeviceBreakdown, Step, TraceSummary
from torchdiag.timeline.sites import Landmarks
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind


def analyse(
    trace: Trace, *, steps: str | None = None, window: str | None = None, device: int | None = None, top: int | None = 3
) -> Breakdown:
    """Where every nanosecond of device time of a trace went.

    `steps` and `window` narrow what is looked at (`selection.py` says how they are written), `device` keeps one
    device, `top` is how many places to list for a cause (None for all). Raises TorchdiagError for a selection that
    the trace cannot meet, and for a trace without events.
    """
    if not np.any(trace.kind != Kind.OTHER):
        raise TorchdiagError(f"{trace.path} holds no events: no operator, call, annotation or device activity")
    with Beside(lambda: Landmarks.of(trace)) as looking:
        found = partitions.partition(trace, steps=steps, window=window, device=device)
        landmarks = looking.result()
    with Beside(lambda: tell(trace, found)) as telling:
        broken_down = tuple(devices(trace, found, landmarks, top))
        host = None
        if not found.devices:
            host = host_only.host_breakdown(trace, found.selected, found.driver, top, landmarks)
        summary, table, source = telling.result()
    return Breakdown(trace=summary, steps=table, steps_source=source, devices=broken_down, host=host)


def tell(trace: Trace, found: Partition) -> tuple[TraceSummary, tuple[Step, ...], Literal["marks", "period", "none"]]:
    """What was read, the steps, and where these come from."""
    table, source = step_tables.steps(trace, found.activities, found.selected)
    health = healths.health(trace, found.activities, table, overruns=found.overruns)
    return summaries.summary(trace, health), table, source


def devices(trace: Trace, found: Partition, landmarks: Landmarks, top: int | None) -> list[DeviceBreakdown]:
    """The breakdown of each device."""
    kind = device_names.device_kind(trace)
    return [
        DeviceBreakdown(
            id=time.device,
            name=device_names.device_name(trace, time.device),
            kind=kind,
            window=time.window,
            states=time.states,
            causes=places.places(trace, time.blocks(), time.activities, top, landmarks),
        )
        for time in found.devices
    ]
