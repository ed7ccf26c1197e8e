"""Text to a trace and a trace to plain values, for the tests of the scanner."""

import json
from dataclasses import fields
from typing import Any

from torchdiag.trace.columns import MISSING, Args, Trace
from torchdiag.trace.quality import QualityLog
from torchdiag.trace.repair import RepairReport, repair
from torchdiag.trace.scan import scan
from torchdiag.trace.vocabulary import TEXT_ARGUMENTS

Event = dict[str, Any]


def scanned(text: str | bytes, *, chunk: int = 1 << 20, block: int = 0, threads: int | None = None) -> Trace:
    """The trace of a text fed in chunks of the given size."""
    data = encoded(text)
    pieces = (data[start : start + chunk] for start in range(0, len(data), chunk))
    return scan(pieces, path="a.json", quality=QualityLog(), block=block, threads=threads)


def of_events(*events: str) -> str:
    """A document with these events."""
    return '{"traceEvents": [' + ", ".join(events) + "]}"


def repaired(text: str | bytes, *, chunk: int = 1 << 20, block: int = 0) -> tuple[bytes, RepairReport]:
    """What a repair of the text writes, and its report."""
    data = encoded(text)
    out: list[bytes] = []
    pieces = (data[start : start + chunk] for start in range(0, len(data), chunk))
    report = repair(pieces, out.append, quality=QualityLog(), block=block)
    return b"".join(out), report


def encoded(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def damages(found: Trace | RepairReport) -> dict[str, int]:
    """Code and count of every quality note."""
    return {note.code: note.count for note in found.quality}


def rows(trace: Trace) -> list[Event]:
    """Every row as a dictionary of what it has: `name`, `cat`, `ph`, `pid`, `tid`, `ts`, `dur`, `id` and arguments."""
    events: list[Event] = []
    for row in range(len(trace)):
        event: Event = {}
        if trace.name[row] >= 0:
            event["name"] = trace.names[trace.name[row]]
        if trace.category[row] >= 0:
            event["cat"] = trace.categories[trace.category[row]]
        if trace.phase[row]:
            event["ph"] = chr(trace.phase[row])
        place = {"pid": trace.tracks.pids[trace.track[row]], "tid": trace.tracks.tids[trace.track[row]]}
        event |= {key: value for key, value in place.items() if value is not None}
        times = {"ts": int(trace.ts_ns[row]), "dur": int(trace.dur_ns[row])}
        event |= {key: value for key, value in times.items() if value != MISSING}
        events.append(event)
    for row, value in zip(trace.flow_id.rows.tolist(), trace.flow_id.values.tolist(), strict=True):
        events[row]["id"] = value
    for column in fields(Args):
        sparse = getattr(trace.args, column.name)
        for row, value in zip(sparse.rows.tolist(), sparse.values.tolist(), strict=True):
            events[row][column.name] = trace.texts[value] if column.name in TEXT_ARGUMENTS else value
    return events


def everything(trace: Trace) -> Any:
    """All a trace says, comparable."""
    notes = [(note.code, note.count, note.first_offset, note.message) for note in trace.quality]
    return rows(trace), trace.top_level, trace.document_starts, notes


def decoded(text: bytes) -> Any:
    """The value of strict JSON: no NaN, no Infinity, no control characters."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text.decode(), parse_constant=refuse)
