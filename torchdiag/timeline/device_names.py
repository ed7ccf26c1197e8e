"""What a device is called, and of what kind it is."""

from collections.abc import Iterator
from typing import Any, cast

from torchdiag.timeline.distinct import distinct
from torchdiag.trace.columns import NO_TEXT, Trace
from torchdiag.trace.vocabulary import DEVICE_KINDS, Kind

PROPERTIES = ("deviceProperties", "computeProperties")
"""Top-level keys that list the devices."""


def device_name(trace: Trace, device: int) -> str:
    """The product name that the trace gives for a device, else `device 0`."""
    for listed in (trace.metadata.get(key) for key in PROPERTIES):
        for properties in cast(list[Any], listed) if isinstance(listed, list) else []:
            match properties:
                case {"id": int(number), "name": str(name)} if number == device and name:
                    return name
                case _:
                    pass
    return f"device {device}"


def device_kind(trace: Trace) -> str:
    """The vendor's name for its devices (`CUDA`, `ROCm`, ...), `GPU` when nothing tells."""
    hints = list(hints_of(trace))
    return next((kind for pattern, kind in DEVICE_KINDS if any(pattern.match(hint) for hint in hints)), "GPU")


def hints_of(trace: Trace) -> Iterator[str]:
    """Texts that tell the vendor: names of runtime calls, top-level keys, categories, processes."""
    codes = distinct(trace.name[trace.kind == Kind.RUNTIME]).tolist()
    yield from (trace.names[code] for code in codes if code != NO_TEXT)
    yield from trace.top_level
    yield from trace.categories
    yield from (pid for pid in trace.tracks.pids if isinstance(pid, str))
