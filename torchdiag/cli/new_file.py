"""Writing a file that appears whole or not at all, and never in place of what it was made from."""

import os
import secrets
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from isal import igzip

from torchdiag.errors import TorchdiagError
from torchdiag.trace.source import STANDARD_INPUT

STANDARD_OUTPUT = "-"
Sink = Callable[[bytes | memoryview], object]
_GZIP_LEVEL = 2
"""Of igzip's 0 to 3: as fast as 0 and 1, and six times as fast as 3 for 3 % more bytes."""


def refuse_same_file(source: str, target: str) -> None:
    """Raise TorchdiagError when `target` is the file `source` reads, whatever links lead to it."""
    if target == STANDARD_OUTPUT:
        return
    try:
        read = os.fstat(sys.stdin.fileno()) if source == STANDARD_INPUT else os.stat(source)  # noqa: PTH116
        same = stat.S_ISREG(read.st_mode) and os.path.samestat(read, os.stat(target))  # noqa: PTH116
    except (OSError, ValueError):
        return
    if same:
        raise TorchdiagError(f"{target} is the trace itself, which is never changed; name another file with -o")


@contextmanager
def writing(target: str, *, force: bool) -> Generator[Sink]:
    """Yield a function that writes bytes to `target`, through gzip where its name ends in `.gz`.

    The file gets its name when the context ends well; otherwise nothing is left of it. `-` is standard output, and
    a device or a pipe is written to as it is. Raises TorchdiagError when `target` exists and `force` is not given, and
    when it cannot be written.
    """
    if target == STANDARD_OUTPUT:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    path = Path(target).resolve()
    _refuse(path, target, force)
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file.write
            return
        with _renamed(path) as file, _packed(file, path.suffix == ".gz") as sink:
            yield sink
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TorchdiagError(f"cannot write {target}: {error.strerror or error}") from error


def _refuse(path: Path, target: str, force: bool) -> None:
    if path.is_dir():
        raise TorchdiagError(f"{target} is a directory; name a file in it")
    if not path.parent.is_dir():
        raise TorchdiagError(f"there is no folder {path.parent}; make it first")
    if path.is_file() and not force:
        raise TorchdiagError(f"{target} exists already; add --force to overwrite it")


@contextmanager
def _renamed(path: Path) -> Generator[BinaryIO]:
    part = path.with_name(f".torchdiag-{secrets.token_hex(8)}.part")
    # Made with the mode any new file gets (a temporary file of `tempfile` is readable by its owner alone).
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        if path.exists():
            part.chmod(stat.S_IMODE(path.stat().st_mode))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _packed(file: BinaryIO, gzip: bool) -> Generator[Sink]:
    if not gzip:
        yield file.write
        return
    with gzip_writer(file) as packer:
        yield packer.write


def gzip_writer(file: BinaryIO) -> igzip.IGzipFile:
    """A fast gzip writer onto `file`, which stays open; the same text gives the same bytes."""
    return igzip.IGzipFile(filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=cast("None", file), mtime=0)
