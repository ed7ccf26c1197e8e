"""Kineto's exported JSON, completed by what was recorded beside it, compressed, put in place whole."""

import json
import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from isal import igzip

from torchdiag.capture.tracks import Event
from torchdiag.errors import TorchdiagError

_TAIL_BYTES: Final = 1 << 16
_HEAD_BYTES: Final = 1 << 16
_CHUNK_BYTES: Final = 1 << 20
_LEVEL: Final = 2
# Kineto ends its text with the list's bracket and a few members. The trace's name is the path of the temporary file, in
# which Kineto does not escape quotes.
_END: Final = re.compile(
    rb'\]\s*(?:,\s*(?:"traceName":\s*"[^\n]*"|"[A-Za-z_ ]+":\s*(?:"(?:[^"\\]|\\.)*"|[-0-9.eE+]+))\s*)*\}\s*\Z'
)
_NAME: Final = re.compile(rb'("traceName":\s*")[^\n]*?("\s*(?:\}|,\s*"))')
_BASE: Final = re.compile(rb'"baseTimeNanoseconds":\s*(\d+)')

EventsOf = Callable[[int], Sequence[Event]]
"""From a trace's `baseTimeNanoseconds` to the events to be added."""


def finish(exported: Path, target: Path, events_of: EventsOf) -> None:
    """Write `target` (gzip) from Kineto's plain text `exported` with `events_of(base)` at the end of its `traceEvents`.

    `target` appears whole or not at all. Raises OSError; TorchdiagError when `exported` does not end as Kineto's do.
    """
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        with exported.open("rb") as source, part.open("xb") as file, _packing(file) as packer:
            _copy(source, packer, target.name, events_of)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def extend(target: Path, events_of: EventsOf) -> None:
    """Add events to a trace that `finish` has written. Raises as `finish` does."""
    plain = target.with_name(f".{target.name}.{secrets.token_hex(6)}.json")
    try:
        with igzip.IGzipFile(str(target), "rb") as source, plain.open("xb") as file:
            while chunk := source.read(_CHUNK_BYTES):
                file.write(chunk)
        finish(plain, target, events_of)
    finally:
        plain.unlink(missing_ok=True)


def _copy(source: BinaryIO, packer: Any, name: str, events_of: EventsOf) -> None:
    size = source.seek(0, 2)
    source.seek(max(0, size - _TAIL_BYTES))
    tail_at = source.tell()
    tail = source.read()
    end = _END.search(tail)
    if end is None:
        raise TorchdiagError("the profiler's trace does not end as expected; it was not exported to its end.")
    source.seek(0)
    head = source.read(min(_HEAD_BYTES, size))
    base = _BASE.search(head) or _BASE.search(tail)
    stop = tail_at + end.start()
    source.seek(0)
    while (left := stop - source.tell()) > 0:
        packer.write(source.read(min(_CHUNK_BYTES, left)))
    events = events_of(int(base.group(1)) if base else 0)
    if events:
        before = tail[: end.start()].rstrip() or b"["
        text = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
        packer.write((b"" if before.endswith(b"[") else b",\n") + text.encode() + b"\n")
    packer.write(_NAME.sub(rb"\g<1>" + name.encode() + rb"\g<2>", tail[end.start() :]))


def _packing(file: BinaryIO) -> igzip.IGzipFile:
    return igzip.IGzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=cast("None", file), mtime=0)
