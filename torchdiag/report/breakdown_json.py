"""The breakdown as one JSON document, schema 1. Names are stable: additions are allowed, a rename is a new schema."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from torchdiag.timeline.result import Breakdown, DeviceBreakdown, HostBreakdown, IdleCause, Place, TraceSummary, Window

SCHEMA = 1


def to_dict(breakdown: Breakdown) -> dict[str, Any]:
    """Plain dictionaries, lists, numbers and texts; times are nanoseconds of the trace's own clock."""
    return {"schema": SCHEMA, **body(breakdown)}


def body(breakdown: Breakdown) -> dict[str, Any]:
    """The document without its schema number, as it stands in a list of several."""
    return {
        "trace": _trace(breakdown.trace),
        "steps_source": breakdown.steps_source,
        "steps": [asdict(step) for step in breakdown.steps],
        "devices": [_device(device) for device in breakdown.devices],
        "host": None if breakdown.host is None else _host(breakdown.host),
        "recorded": [asdict(item) for item in breakdown.recorded],
    }


def several(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One document of several traces, each a `body` or `{"path", "error"}`."""
    return {"schema": SCHEMA, "breakdowns": list(entries)}


def dumps(document: dict[str, Any]) -> str:
    """The document as ASCII text: no character of a trace reaches the reader raw."""
    return json.dumps(document, indent=2, allow_nan=False)


def _trace(trace: TraceSummary) -> dict[str, Any]:
    return {
        "path": trace.path,
        "events": trace.events,
        "ranks": list(trace.ranks),
        "torch": trace.torch,
        "quality": [note.to_dict() for note in trace.quality],
    }


def _window(window: Window) -> dict[str, Any]:
    return {"start_ns": window.start_ns, "end_ns": window.end_ns, "source": window.source}


def _device(device: DeviceBreakdown) -> dict[str, Any]:
    return {
        "id": device.id,
        "name": device.name,
        "kind": device.kind,
        "window": _window(device.window),
        "states_ns": asdict(device.states),
        "idle_ns": {cause.cause.value: cause.idle_ns for cause in device.causes},
        "headline_ns": asdict(device.headline),
        "causes": [_cause(cause) for cause in device.causes if cause.idle_ns],
    }


def _cause(cause: IdleCause) -> dict[str, Any]:
    return {
        "cause": cause.cause.value,
        "idle_ns": cause.idle_ns,
        "count": cause.count,
        "places": _places(cause.places),
    }


def _places(places: Sequence[Place]) -> list[dict[str, Any]]:
    return [asdict(place) for place in places]


def _host(host: HostBreakdown) -> dict[str, Any]:
    return {
        "window": _window(host.window),
        "thread": host.thread,
        "host_ns": {
            "operator": host.operator_ns,
            "runtime": host.runtime_ns,
            "python": host.python_ns,
            "dataloader": host.dataloader_ns,
            "uncovered": host.uncovered_ns,
        },
        "cpu_active_ns": host.cpu_active_ns,
        "places": _places(host.places),
    }
