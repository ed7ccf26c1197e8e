"""Damaged text to valid JSON, streamed: every event that can be saved, with all it holds, and every top-level key."""

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torchdiag._native import library
from torchdiag.trace import damage
from torchdiag.trace.quality import Quality, QualityLog, UnreadableTraceError

Bytes = bytes | bytearray | memoryview

_PIECE = 1 << 20
"""What is repaired at once; the text written for it is held in memory."""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair did: events copied as they were, events changed, events left out, and what was wrong."""

    kept: int
    mended: int
    dropped: int
    quality: tuple[Quality, ...]


def repair(
    chunks: Iterable[Bytes], sink: Callable[[bytes], object], *, quality: QualityLog, block: int = 0
) -> RepairReport:
    """Read the text of a trace, in pieces of any size, and write it to `sink` as one valid JSON document.

    A valid trace comes out as an equal JSON value. Of several documents the events are joined, and of a top-level key
    the first document's value is kept. What was wrong is added to `quality`. Raises UnreadableTraceError when the
    text holds no list of events (after something may have been written), MemoryError when there is not enough memory.
    """
    repairer = _Repairer(block)
    for chunk in chunks:
        view = memoryview(chunk).cast("B")
        for start in range(0, len(view), _PIECE):
            sink(repairer.feed(view[start : start + _PIECE]))
    sink(repairer.finish())
    return repairer.report(quality)


class _Repairer:
    """Owns the native reader."""

    def __init__(self, block: int) -> None:
        self._library = library.load()
        self._handle = self._library.td_repair_new(block)
        if not self._handle:
            raise MemoryError("there is not enough memory to read a trace")

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.td_repair_free(self._handle)

    def feed(self, piece: memoryview) -> bytes:
        """What comes out for a piece of text."""
        library.check(self._library.td_repair_feed(self._handle, library.address(piece), len(piece)))
        return self._output()

    def finish(self) -> bytes:
        """What comes out at the end."""
        library.check(self._library.td_repair_finish(self._handle))
        return self._output()

    def _output(self) -> bytes:
        output = library.Array()
        library.check(self._library.td_repair_output(self._handle, ctypes.byref(output)))
        return library.copied(output)

    def report(self, quality: QualityLog) -> RepairReport:
        """What was done; its notes are added to `quality`."""
        done = library.Repaired()
        library.check(self._library.td_repair_report_of(self._handle, ctypes.byref(done)))
        if not done.found_events:
            raise UnreadableTraceError("nothing to repair: no list of events (traceEvents) was found in the text")
        note = library.Note()
        for index in range(done.note_count):
            library.check(self._library.td_repair_note(self._handle, index, ctypes.byref(note)))
            damage.tell(quality, note.code.decode(), note.count, note.first_offset)
        return RepairReport(done.kept, done.mended, done.dropped, tuple(quality.notes))
