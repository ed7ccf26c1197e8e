"""Text to columns: the native scanner, and what it found as a `Trace`."""

import ctypes
import json
import os
import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import library
from torchdiag.trace import damage
from torchdiag.trace.columns import Args, Sparse, Strings, Trace, Tracks
from torchdiag.trace.quality import QualityLog, UnreadableTraceError
from torchdiag.trace.vocabulary import FLOAT_ARGUMENTS, INT_ARGUMENTS, TEXT_ARGUMENTS

_KINDS = ((INT_ARGUMENTS, np.int64), (FLOAT_ARGUMENTS, np.float64), (TEXT_ARGUMENTS, np.int32))
"""Tables of argument keys in the order of TD_INTEGER, TD_REAL and TD_TEXT, and what their columns hold."""

Bytes = bytes | bytearray | memoryview

_MOST_THREADS = 4
"""What the first thread does alone (to copy text, to join what others found) leaves more than this little to do."""

_DECIMAL = re.compile(r"\s*([+-]?)(\d+)(?:\.0*)?\s*")
_HEXADECIMAL = re.compile(r"\s*0[xX][0-9a-fA-F]+\s*")


def scan(
    chunks: Iterable[Bytes], *, path: str, quality: QualityLog, block: int = 0, threads: int | None = None
) -> Trace:
    """Read the text of a trace, in pieces of any size, into columns.

    Damaged text is read as far as it goes; what was wrong is added to `quality`, whose notes become those of the
    trace. `block` is how many bytes are looked at together (0 for a good number), `threads` how many threads look at
    them (None for one a core, at most four); results depend on neither.
    Raises UnreadableTraceError when the text holds no list of events, MemoryError when there is not enough memory.
    """
    scanner = _Scanner(block, min(_cores(), _MOST_THREADS) if threads is None else threads)
    size = 0
    for chunk in chunks:
        size += scanner.feed(chunk)
    return scanner.finish(path, quality, size)


class _Scanner:
    """Owns the native reader. The arrays of a trace keep it alive, for it owns their memory."""

    def __init__(self, block: int, threads: int) -> None:
        self._library = library.load()
        self._columns = {name: dtype for table, dtype in _KINDS for name in table}
        self._handle = self._library.td_scan_new(len(self._columns), block, threads)
        if not self._handle:
            raise MemoryError("there is not enough memory to read a trace")
        place = {name: column for column, name in enumerate(self._columns)}
        for kind, (table, _) in enumerate(_KINDS):
            for name, keys in table.items():
                for key in keys:
                    raw = key.encode()
                    library.check(self._library.td_scan_key(self._handle, raw, len(raw), kind, place[name]))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.td_scan_free(self._handle)

    def feed(self, chunk: Bytes) -> int:
        """Read one piece of text; returns its size. Other threads run meanwhile."""
        if not len(chunk):
            return 0
        library.check(self._library.td_scan_feed(self._handle, library.address(chunk), len(chunk)))
        return len(chunk)

    def finish(self, path: str, quality: QualityLog, size: int) -> Trace:
        """Read what is left and return all of it."""
        library.check(self._library.td_scan_finish(self._handle))
        found = library.Columns()
        library.check(self._library.td_scan_columns(self._handle, ctypes.byref(found)))
        if not found.found_events:
            raise UnreadableTraceError(_why_no_trace(path, size))
        self._tell(quality, found.note_count)
        rows = self._array(found.document_rows, np.int64)
        starts = tuple(int(row) for row in rows) or (0,)
        tracks, track = self._tracks(found)
        return Trace(
            path=path,
            names=self._strings(found.names),
            categories=self._strings(found.categories),
            texts=self._strings(found.texts),
            tracks=tracks,
            name=self._array(found.name, np.int32),
            category=self._array(found.category, np.int32),
            track=track,
            phase=self._array(found.phase, np.uint8),
            ts_ns=self._array(found.time, np.int64),
            dur_ns=self._array(found.duration, np.int64),
            args=self._arguments(),
            flow_id=self._sparse(found.flow_id, np.int64),
            top_level=self._top_level(found.top_level_count, starts, len(track), quality),
            document_starts=starts,
            quality=tuple(quality.notes),
        )

    def _array(self, array: library.Array, dtype: type[Any]) -> NDArray[Any]:
        """A view of native memory that keeps this object alive."""
        if not array.size:
            return np.empty(0, dtype)
        return np.asarray(_Memory(self, array, np.dtype(dtype).str))

    def _strings(self, texts: library.Texts) -> Strings:
        return Strings(self._array(texts.offsets, np.int64), self._array(texts.bytes, np.uint8))

    def _sparse(self, sparse: library.SparseArrays, dtype: type[Any]) -> Sparse[Any]:
        return Sparse(self._array(sparse.rows, np.uint32), self._array(sparse.values, dtype))

    def _arguments(self) -> Args:
        columns: dict[str, Sparse[Any]] = {}
        for column, (name, dtype) in enumerate(self._columns.items()):
            sparse = library.SparseArrays()
            library.check(self._library.td_scan_argument(self._handle, column, ctypes.byref(sparse)))
            columns[name] = self._sparse(sparse, dtype)
        return Args(**{field.name: columns[field.name] for field in fields(Args)})

    def _tracks(self, found: library.Columns) -> tuple[Tracks, NDArray[np.int32]]:
        """The distinct pairs of pid and tid. `1` and `"1"` are the same pid, which the native reader does not know."""
        identities: list[int | str | None] = [_identity(text) for text in self._strings(found.identities)]
        pids = self._array(found.track_pid, np.int32)
        tids = self._array(found.track_tid, np.int32)
        place: dict[tuple[int | str | None, int | str | None], int] = {}
        renumbered = np.empty(len(pids), np.int32)
        for native in range(len(pids)):
            pid, tid = int(pids[native]), int(tids[native])
            pair = (None if pid < 0 else identities[pid], None if tid < 0 else identities[tid])
            renumbered[native] = place.setdefault(pair, len(place))
        track = self._array(found.track, np.int32)
        if len(place) < len(pids):
            track = renumbered[track]
        return Tracks([pid for pid, _ in place], [tid for _, tid in place]), track

    def _top_level(self, count: int, starts: tuple[int, ...], rows: int, quality: QualityLog) -> dict[str, bytes]:
        """The top-level keys of the first document that has events."""
        documents: list[dict[str, bytes]] = [{} for _ in starts]
        entry = library.TopLevel()
        for index in range(count):
            library.check(self._library.td_scan_top_level(self._handle, index, ctypes.byref(entry)))
            documents[entry.document][library.copied(entry.key).decode("utf-8", "replace")] = library.copied(
                entry.value
            )
        _tell_ranks(documents, quality)
        ends = (*starts[1:], rows)
        held = [number for number, (start, end) in enumerate(zip(starts, ends, strict=True)) if end > start]
        return documents[held[0] if held else 0]

    def _tell(self, quality: QualityLog, count: int) -> None:
        note = library.Note()
        for index in range(count):
            library.check(self._library.td_scan_note(self._handle, index, ctypes.byref(note)))
            damage.tell(quality, note.code.decode(), note.count, note.first_offset)


class _Memory:
    """Native memory as numpy takes it: numpy keeps this object, and this object keeps the owner of the memory."""

    def __init__(self, owner: _Scanner, array: library.Array, dtype: str) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "shape": (array.size,), "typestr": dtype, "data": (array.data, True)}


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _identity(text: str) -> int | str:
    """A pid or tid from its JSON text: an int where that is a whole number of 64 bits, else the text."""
    in_quotes = text.startswith('"')
    value = text[1:-1] if in_quotes else text
    number: int | None = None
    if match := _DECIMAL.fullmatch(value):
        number = int(match[1] + match[2])
    elif _HEXADECIMAL.fullmatch(value):
        number = int(value, 16)
    elif not in_quotes and float(value).is_integer():
        number = int(float(value))
    if number is not None and -(2**63) <= number < 2**63:
        return number
    if not in_quotes:
        return text
    content: str = json.loads(text)
    return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _tell_ranks(documents: list[dict[str, bytes]], quality: QualityLog) -> None:
    ranks = {keys["distributedInfo"] for keys in documents if "distributedInfo" in keys}
    if len(ranks) > 1:
        quality.add("several-ranks", f"the file holds traces of {len(ranks)} ranks", len(ranks))


def _why_no_trace(path: str, size: int) -> str:
    if size == 0:
        return f"{path} is empty: there is no trace in it"
    return f"{path} is no trace: no list of events (traceEvents) was found in it"
