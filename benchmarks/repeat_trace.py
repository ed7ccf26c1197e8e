"""Makes a large trace by repeating a small one, one copy after the other in time, with ids of its own in every copy.

The layout of the file stays as its exporter wrote it: only the digits that must differ are replaced. Shifted are times
(`ts`), correlations, External ids, ids of Python frames and of their parents, event indices, sequence numbers, ids of
flow arrows and the numbers of `ProfilerStep#` marks. A correlation, arrow or External id of 0 means none and stays 0.

    python benchmarks/repeat_trace.py SOURCE TARGET 1GB [--gz]        (with --gz it writes TARGET.gz too)
"""

import gzip
import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

VARIABLE = re.compile(
    rb'"(?P<key>ts|correlation|External id|external id|Python id|Python parent id|Ev Idx|Sequence number|id)"'
    rb'\s*:\s*"?(?P<number>\d+(?:\.\d+)?)|ProfilerStep#(?P<step>\d+)'
)
DURATION = re.compile(rb'"ts"\s*:\s*"?([\d.]+)"?\s*,\s*"dur"\s*:\s*"?([\d.]+)')
FAMILIES = {
    b"correlation": "arrow", b"id": "arrow", b"External id": "external", b"external id": "external",
    b"Python id": "python", b"Python parent id": "python", b"Ev Idx": "event", b"Sequence number": "sequence",
}  # fmt: skip
"""Keys whose numbers refer to each other share a stride; a flow arrow's id is the correlation of its call."""
ZERO_MEANS_NONE = ("arrow", "external")
PAUSE_NS = 1_000_000
"""Between the end of one copy and the start of the next."""
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


@dataclass(frozen=True)
class Field:
    """A number that differs from copy to copy: which family it belongs to, and its value in the first copy."""

    family: str
    value: int
    text: bytes


@dataclass(frozen=True)
class Template:
    """A trace cut at every number that must differ: `fixed` has one piece more than `fields`."""

    head: bytes
    fixed: list[bytes]
    fields: list[Field]
    tail: bytes
    strides: dict[str, int]
    events: int

    def copies(self, count: int) -> Iterator[bytes]:
        """The text of the trace with its events repeated `count` times, in chunks of one copy."""
        yield self.head
        for copy in range(count):
            woven = [b""] * (2 * len(self.fields) + 1)
            woven[0::2] = self.fixed
            woven[1::2] = [shift(field, copy * self.strides[field.family]) for field in self.fields]
            yield (b",\n" if copy else b"") + b"".join(woven)
        yield self.tail

    def copies_for(self, size: int) -> int:
        """How many copies make a text of at least `size` bytes."""
        one = sum(map(len, self.fixed)) + sum(len(field.text) for field in self.fields)
        return max(1, -(-size // one))


def shift(field: Field, distance: int) -> bytes:
    """The digits of a field moved by `distance`."""
    if not distance or (field.value == 0 and field.family in ZERO_MEANS_NONE):
        return field.text
    moved = field.value + distance
    if field.family == "time" and b"." in field.text:
        return b"%d.%03d" % divmod(moved, 1_000)
    return b"%d" % (moved // 1_000 if field.family == "time" else moved)


def nanoseconds(text: bytes) -> int:
    """Decimal microseconds as integer nanoseconds; digits beyond the third decimal are dropped."""
    whole, _, part = text.partition(b".")
    return int(whole) * 1_000 + int(part[:3].ljust(3, b"0"))


def template_of(text: bytes) -> Template:
    """Cut a trace (an object with `traceEvents`, valid JSON) into what stays and what differs."""
    start = text.index(b"[", text.index(b'"traceEvents"')) + 1
    body = text[start - 1 :].decode("utf-8", "replace")
    elements, length = json.JSONDecoder(strict=False).raw_decode(body)
    end = start - 1 + len(body[:length].encode()) - 1
    events = text[start:end].rstrip()
    fixed: list[bytes] = []
    fields: list[Field] = []
    here = 0
    for match in VARIABLE.finditer(events):
        name = "number" if match["key"] else "step"
        digits = match[name]
        if match["key"] == b"ts":
            field = Field("time", nanoseconds(digits), digits)
        else:
            field = Field(FAMILIES[match["key"]] if match["key"] else "step", int(digits), digits)
        fixed.append(events[here : match.start(name)])
        fields.append(field)
        here = match.end(name)
    fixed.append(events[here:])
    return Template(text[:start], fixed, fields, text[start + len(events) :], strides_of(fields, events), len(elements))


def strides_of(fields: list[Field], events: bytes) -> dict[str, int]:
    """How far each family moves from one copy to the next: further than its values are apart."""
    strides = {
        family: max(field.value for field in fields if field.family == family) + 1
        for family in {field.family for field in fields} - {"time", "step"}
    }
    steps = {field.value for field in fields if field.family == "step"}
    strides["step"] = max(steps, default=0) - min(steps, default=0) + 1
    starts = [field.value for field in fields if field.family == "time" and field.value]
    ends = [nanoseconds(ts) + nanoseconds(dur) for ts, dur in DURATION.findall(events)]
    strides["time"] = -(-(max([*starts, *ends]) - min(starts) + PAUSE_NS) // 1_000) * 1_000
    return strides


def read(source: Path) -> bytes:
    """The text of a plain or gzip-compressed trace."""
    data = source.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def size_of(text: str) -> int:
    """`1GB`, `250MB` or a number of bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?B)?", text.strip().upper())
    if match is None:
        raise ValueError(f"not a size: {text!r} (say 250MB or 1GB)")
    return round(float(match[1]) * UNITS[match[2] or ""])


def write(source: Path, target: Path, size: int, *, compressed: bool) -> int:
    """Write `target` (and `target`.gz when `compressed`); returns the number of events."""
    template = template_of(read(source))
    count = template.copies_for(size)
    with ExitStack() as files:
        outputs = [files.enter_context(target.open("wb"))]
        if compressed:
            outputs.append(files.enter_context(gzip.open(f"{target}.gz", "wb", compresslevel=6)))
        for chunk in template.copies(count):
            for output in outputs:
                output.write(chunk)
    return template.events * count


def main() -> None:
    """The command line; prints the number of events written."""
    source, target, size, *rest = sys.argv[1:]
    print(write(Path(source), Path(target), size_of(size), compressed="--gz" in rest))


if __name__ == "__main__":
    main()
