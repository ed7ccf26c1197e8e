"""What the trace says about the device it was recorded on."""

import re
from dataclasses import dataclass
from typing import Any, cast

from torchdiag.timeline.facts.facts import Facts

_BIG = re.compile(r"\b(A100|A800|A30|H\d00|H20|GH200|B\d00|GB\d00)\b")


@dataclass(frozen=True, slots=True)
class Gpu:
    """The name of the first device ("" where unknown) and its CUDA compute capability (None where it has none).

    `datacenter`: whether it is one whose tensor cores do TF32 several times as fast as FP32.
    """

    name: str
    capability: tuple[int, int] | None

    @property
    def tf32(self) -> bool:
        """Whether it has TF32 at all (compute capability 8.0)."""
        return self.capability is not None and self.capability >= (8, 0)

    @property
    def datacenter(self) -> bool:
        """Whether its TF32 is several times as fast as its FP32, as NVIDIA's data sheets have it."""
        return _BIG.search(self.name) is not None


def gpu(facts: Facts) -> Gpu:
    """The device that the trace was recorded on."""
    told: Any = facts.trace.metadata.get("deviceProperties")
    first: object = cast(list[object], told)[0] if isinstance(told, list) and told else {}
    properties = cast(dict[str, object], first) if isinstance(first, dict) else {}
    name, major, minor = (properties.get(key) for key in ("name", "computeMajor", "computeMinor"))
    nvidia = isinstance(name, str) and not re.search(r"AMD|MI\d|Radeon|Intel", name)
    capability = (major, minor) if isinstance(major, int) and isinstance(minor, int) and nvidia else None
    return Gpu(name if isinstance(name, str) else "", capability)
