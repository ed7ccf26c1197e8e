"""What a breakdown and the slow partition both say, in one form."""

from reference.partition import DevicePartition
from torchdiag.timeline.result import STATE_NAMES, Breakdown


def figures(breakdown: Breakdown) -> dict[int, DevicePartition]:
    """The integers of a breakdown, by device."""
    return {
        device.id: DevicePartition(
            window=(device.window.start_ns, device.window.end_ns),
            source=device.window.source,
            states={name: getattr(device.states, name) for name in STATE_NAMES},
            idle={cause.cause.value: cause.idle_ns for cause in device.causes},
            headline={
                "active": device.headline.active,
                "transfer": device.headline.transfer,
                "python_overhead": device.headline.python_overhead,
                "idle": device.headline.idle,
            },
        )
        for device in breakdown.devices
    }
