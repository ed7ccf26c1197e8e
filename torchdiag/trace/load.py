"""A trace from a path: opened, unpacked, scanned, and cut to the document one asks about."""

import os
from dataclasses import fields, replace
from typing import Any

import numpy as np

from torchdiag.trace import scan
from torchdiag.trace.columns import Args, Sparse, Trace
from torchdiag.trace.quality import Quality, QualityLog
from torchdiag.trace.source import Progress, chunks


def load(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Trace:
    """Read the trace at `path`, `-` for standard input, whatever it is packed in and as far as it can be read.

    What was damaged is in the `quality` of the result. Where several documents were written to one file, the first
    that has events is returned. `progress` is told the bytes of the file read so far. Raises UnreadableTraceError
    when the input cannot be opened or nothing in it can be read as a trace.
    """
    name = os.fspath(path)
    quality = QualityLog()
    trace = scan.scan(chunks(name, quality=quality, progress=progress), path=name, quality=quality)
    return _first_with_events(trace)


def _first_with_events(trace: Trace) -> Trace:
    starts = trace.document_starts
    if len(starts) < 2:
        return trace
    ends = (*starts[1:], len(trace))
    held = [place for place, (start, end) in enumerate(zip(starts, ends, strict=True)) if end > start]
    kept = held[0] if held else 0
    note = Quality(
        "several-documents",
        f"the file holds {len(starts)} traces one after another, {len(held)} of them with events; this is number "
        f"{kept + 1}, the others were left out",
        count=len(starts),
    )
    others = tuple(other for other in trace.quality if other.code != note.code)
    return replace(_rows(trace, starts[kept], ends[kept]), quality=(*others, note))


def _rows(trace: Trace, start: int, end: int) -> Trace:
    """The trace of rows `start` to `end` alone; dictionaries and tracks stay whole."""

    def cut(column: Sparse[Any]) -> Sparse[Any]:
        first, last = np.searchsorted(column.rows, [start, end])
        return Sparse((column.rows[first:last] - np.uint32(start)).astype(np.uint32), column.values[first:last])

    return replace(
        trace,
        name=trace.name[start:end],
        category=trace.category[start:end],
        track=trace.track[start:end],
        phase=trace.phase[start:end],
        ts_ns=trace.ts_ns[start:end],
        dur_ns=trace.dur_ns[start:end],
        args=Args(**{column.name: cut(getattr(trace.args, column.name)) for column in fields(Args)}),
        flow_id=cut(trace.flow_id),
        document_starts=(0,),
    )
