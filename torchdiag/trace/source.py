"""The text of a trace, whatever it is packed in: plain, gzip, zlib or zip, a file or standard input.

What a file is, its first bytes say; its name is not looked at. Reading and inflating run in a thread of their own,
at most a few pieces ahead, so that they overlap with scanning while memory stays bounded.
"""

import os
import queue
import stat
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from torchdiag.trace.inflate import gunzip, looks_like_gzip, looks_like_zlib, unzlib
from torchdiag.trace.quality import QualityLog, UnreadableTraceError
from torchdiag.trace.supply import BLOCK, Supply

STANDARD_INPUT = "-"
ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
PIECES_AHEAD = 4
_DEEPEST_PACKING = 3
_LONGEST_MAGIC = 32
_FOREIGN = {
    b"\x28\xb5\x2f\xfd": "it is compressed with Zstandard; unpack it first: zstd -d",
    b"\xfd7zXZ": "it is compressed with xz; unpack it first: xz -d",
    b"BZh": "it is compressed with bzip2; unpack it first: bzip2 -d",
    b"7z\xbc\xaf": "it is a 7-Zip archive; unpack it first: 7z x",
    b"version https://git-lfs": "it is a pointer of Git LFS in place of the file; fetch the file: git lfs pull",
}

Progress = Callable[[int, int | None], None]
"""Told (bytes of the file read so far, bytes of the file or None where that is not known)."""


def chunks(
    path: str | os.PathLike[str], *, quality: QualityLog, progress: Progress | None = None
) -> Generator[bytes, None, None]:
    """Yield the decompressed text of the trace at `path` (`-` for standard input) in pieces of 1 to 2 MB.

    Damage to the packing is noted in `quality` once the text has ended. Raises UnreadableTraceError when the input
    cannot be opened or nothing comes out of it.
    """
    name = os.fspath(path)
    reading = _Reading(name)
    pieces = _ahead(_regrouped(reading.text()))
    try:
        for piece in pieces:
            if progress is not None:
                progress(reading.bytes_read, reading.size)
            yield piece
    except UnreadableTraceError as error:
        raise UnreadableTraceError(f"cannot read {_shown(name)}: {error}") from error
    except OSError as error:
        raise UnreadableTraceError(f"cannot read {_shown(name)}: {_why(error, name)}") from error
    finally:
        pieces.close()
    quality.notes.extend(reading.found.notes)


def is_plain_or_gzip(path: str) -> bool:
    """Whether the file at `path` is packed in no other way than gzip, if at all."""
    with Path(path).open("rb") as file:
        head = file.read(_LONGEST_MAGIC)
    return not head.startswith(ZIP_MAGICS) and not looks_like_zlib(head)


class _Reading:
    """One input being read; `text` runs in the reading thread, the rest may be looked at from outside."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found = QualityLog()
        self.size: int | None = None
        self.bytes_read = 0

    def text(self) -> Iterator[bytes]:
        """Open the input, yield its text, close it."""
        if self.name == STANDARD_INPUT:
            yield from self._text_of(_standard_input())
            return
        descriptor = os.open(self.name, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            yield from self._text_of(descriptor)
        finally:
            os.close(descriptor)

    def _text_of(self, descriptor: int) -> Iterator[bytes]:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise UnreadableTraceError("it is a directory; name a trace file in it")
        is_file = stat.S_ISREG(status.st_mode)
        start = os.lseek(descriptor, 0, os.SEEK_CUR) if is_file else 0
        if is_file:
            self.size = status.st_size
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)

        def read(position: int, size: int) -> bytes:
            data = os.pread(descriptor, size, position) if is_file else os.read(descriptor, size)
            self.bytes_read = max(self.bytes_read, position + len(data))
            return data

        supply = Supply(read, start=start, rewindable=is_file)
        text = self._unpacked(supply, descriptor)
        if not text.peek(1):
            raise UnreadableTraceError(self._why_empty())
        yield from text.blocks()

    def _unpacked(self, supply: Supply, descriptor: int) -> Supply:
        """What is inside, however often it was packed (a `.gz` fetched through a gzipping server is gzip twice)."""
        for _ in range(_DEEPEST_PACKING):
            head = supply.peek(_LONGEST_MAGIC)
            foreign = next((advice for magic, advice in _FOREIGN.items() if head.startswith(magic)), None)
            if foreign is not None:
                raise UnreadableTraceError(foreign)
            if looks_like_gzip(head):
                supply = Supply.over(gunzip(supply, self.found))
            elif head.startswith(ZIP_MAGICS):
                from torchdiag.trace.archive import unzip  # noqa: PLC0415 - zipfile is for the few that need it

                supply = Supply.over(unzip(descriptor, supply, self.found))
            elif looks_like_zlib(head):
                supply = Supply.over(unzlib(supply, self.found))
            else:
                break
        return supply

    def _why_empty(self) -> str:
        if self.found.notes:
            return f"nothing comes out of it, {self.found.notes[0].message}; write the trace again"
        if self.bytes_read:
            return "there is no text inside; write the trace again"
        return "it is empty (0 bytes); write the trace again"


def _standard_input() -> int:
    if sys.stdin is None or sys.stdin.isatty():
        raise UnreadableTraceError("it is a terminal; pipe a trace into it or name a file")
    return sys.stdin.fileno()


def _regrouped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of 1 to 2 MB, the last one excepted."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= BLOCK:
            yield b"".join(held) if len(held) > 1 else piece
            held, size = [], 0
    if held:
        yield b"".join(held)


def _ahead(pieces: Iterator[bytes]) -> Generator[bytes, None, None]:
    """The same pieces, made in a thread that is at most PIECES_AHEAD of them ahead.

    What the thread raises is raised here. Closing this generator ends the thread: at once, or, when it waits for a
    pipe, as soon as that gives something.
    """
    ready: queue.SimpleQueue[bytes | BaseException | None] = queue.SimpleQueue()
    room = threading.Semaphore(PIECES_AHEAD)
    abandoned = threading.Event()

    def work() -> None:
        try:
            for piece in pieces:
                room.acquire()
                if abandoned.is_set():
                    return
                ready.put(piece)
            ready.put(None)
        except BaseException as error:
            ready.put(error)
        finally:
            if isinstance(pieces, Generator):
                pieces.close()

    thread = threading.Thread(target=work, name="torchdiag-read", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
            room.release()
    finally:
        abandoned.set()
        room.release()
        thread.join(timeout=1.0)


def _shown(name: str) -> str:
    return "standard input" if name == STANDARD_INPUT else name


def _why(error: OSError, name: str) -> str:
    if isinstance(error, FileNotFoundError):
        folder = Path(name).absolute().parent
        return f"there is no such file in {folder}" if folder.is_dir() else f"there is no folder {folder}"
    if isinstance(error, PermissionError):
        return "you may not read it; ask its owner or change its mode (chmod +r)"
    return f"{error.strerror or error}"
