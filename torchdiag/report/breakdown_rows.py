"""The breakdown as flat rows, one a device: what a spreadsheet and a data frame hold."""

from typing import Any

from torchdiag.timeline.result import STATE_NAMES, Breakdown, Cause, DeviceBreakdown, Headline, HostBreakdown

_HOST_NAMES = ("operator", "runtime", "python", "dataloader", "uncovered", "cpu_active")
_HEADLINE_NAMES = tuple(Headline.__dataclass_fields__)

COLUMNS: tuple[str, ...] = (
    "path",
    "device",
    "name",
    "kind",
    "window_start_ns",
    "window_end_ns",
    "window_ns",
    "window_source",
    "steps",
    *(f"headline_{name}_ns" for name in _HEADLINE_NAMES),
    *(f"state_{name}_ns" for name in STATE_NAMES),
    *(f"idle_{cause.value}_ns" for cause in Cause),
    *(f"host_{name}_ns" for name in _HOST_NAMES),
    "top_cause",
    "top_place",
    "error",
)
"""Column names; stable, new ones are added at the end. Times are nanoseconds."""


def rows(breakdown: Breakdown) -> list[dict[str, Any]]:
    """One dictionary a device, keyed by `COLUMNS`; None where a column means nothing.

    A trace without device activity gives one row with its host columns filled and `device` None.
    """
    if breakdown.devices:
        return [_device_row(breakdown, device) for device in breakdown.devices]
    row = _empty(breakdown.trace.path) | {"steps": len(breakdown.steps)}
    return [row | (_host_columns(breakdown.host) if breakdown.host else {})]


def error_row(path: str, error: str) -> dict[str, Any]:
    """The row of a trace that gave no breakdown."""
    return _empty(path) | {"error": error}


def _empty(path: str) -> dict[str, Any]:
    return dict.fromkeys(COLUMNS) | {"path": path}


def _device_row(breakdown: Breakdown, device: DeviceBreakdown) -> dict[str, Any]:
    window, headline = device.window, device.headline
    row = _empty(breakdown.trace.path) | {
        "device": device.id,
        "name": device.name,
        "kind": device.kind,
        "window_start_ns": window.start_ns,
        "window_end_ns": window.end_ns,
        "window_ns": window.length_ns,
        "window_source": window.source,
        "steps": len(breakdown.steps),
    }
    row |= {f"headline_{name}_ns": getattr(headline, name) for name in _HEADLINE_NAMES}
    row |= {f"state_{name}_ns": getattr(device.states, name) for name in STATE_NAMES}
    row |= {f"idle_{cause.cause.value}_ns": cause.idle_ns for cause in device.causes}
    top = max(device.causes, key=lambda cause: cause.idle_ns)
    if top.idle_ns:
        row["top_cause"] = top.cause.value
        row["top_place"] = top.places[0].label if top.places else None
    return row


def _host_columns(host: HostBreakdown) -> dict[str, Any]:
    window = host.window
    return {
        "window_start_ns": window.start_ns,
        "window_end_ns": window.end_ns,
        "window_ns": window.length_ns,
        "window_source": window.source,
        **{f"host_{name}_ns": getattr(host, f"{name}_ns") for name in _HOST_NAMES},
    }
