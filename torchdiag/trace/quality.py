"""What is wrong with a trace, told rather than hidden."""

from dataclasses import dataclass, field
from typing import Any

from torchdiag.errors import TorchdiagError

CUT_SHORT = frozenset({"truncated-json", "truncated-gzip", "bad-gzip"})
"""Codes of traces whose end is missing. Exporters write GPU work after the host's, so that a cut takes it first."""


@dataclass(frozen=True, slots=True)
class Quality:
    """One kind of damage or doubt found in a trace.

    `code` is stable and machine-readable (`truncated-json`, `bad-utf8`, `unlinked-gpu-work`, ...), `message` is one
    sentence for a person, `count` is how often it occurred, and `first_offset` the byte of the decompressed text
    where it was first seen (None where a place in the text means nothing).
    """

    code: str
    message: str
    count: int = 1
    first_offset: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """`code`, `message` and `count`, as in the machine-readable breakdown."""
        return {"code": self.code, "message": self.message, "count": self.count}


@dataclass(slots=True)
class QualityLog:
    """Collects quality notes while a trace is opened and scanned."""

    notes: list[Quality] = field(default_factory=list[Quality])

    def add(self, code: str, message: str, count: int = 1, first_offset: int | None = None) -> None:
        """Append one note."""
        self.notes.append(Quality(code, message, count, first_offset))


class UnreadableTraceError(TorchdiagError):
    """Nothing could be salvaged from the input."""
