"""Which files the arguments of a command name: files, directories and patterns."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchdiag.errors import TorchdiagError
from torchdiag.trace.quality import QualityLog
from torchdiag.trace.source import STANDARD_INPUT, chunks

_SUFFIXES = (".json", ".json.gz", ".json.zip", ".gz", ".zip")
_MARKS = (b'"traceEvents"', b'"ph"', b'"schemaVersion"', b'"deviceProperties"')
"""What the first megabyte of a trace holds at least one of."""


def trace_files(arguments: Sequence[str]) -> list[str]:
    """The paths the arguments name, each once, in the order given; those of a directory or pattern sorted.

    The folder of a run is a path of its own, any other directory stands for the runs and the files under it that look
    like traces. A path that does not exist is kept, so that
    whoever opens it says so. Raises TorchdiagError for a directory or a pattern that gives nothing.
    """
    named = dict.fromkeys(path for argument in arguments for path in _files(argument))
    if STANDARD_INPUT in named and len(named) > 1:
        raise TorchdiagError("standard input (-) can only be read alone; give the other traces in a run of their own")
    return list(named)


def _files(argument: str) -> list[str]:
    if argument == STANDARD_INPUT or Path(argument).is_file():
        return [argument]
    if Path(argument).is_dir():
        found = [path for path in sorted(_in_folder(argument)) if _looks_like_trace(path)]
        if not found:
            raise TorchdiagError(f"{argument}: no traces in this directory (looked for .json, .gz and .zip files)")
        return found
    if not Path(argument).exists() and glob.has_magic(argument):
        named = glob.glob(argument, recursive=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
        matches = sorted(path for path in named if Path(path).is_file())
        if not matches:
            raise TorchdiagError(f"{argument}: no file matches this pattern")
        return matches
    return [argument]


def _in_folder(directory: str) -> Iterator[str]:
    from torchdiag.history.run_folder import is_run  # noqa: PLC0415 - traces that are files are found without it

    for parent, folders, names in os.walk(directory):
        if is_run(parent):
            folders.clear()
            yield parent
            continue
        yield from (str(Path(parent, name)) for name in names if name.lower().endswith(_SUFFIXES))


def _looks_like_trace(path: str) -> bool:
    """Whether the start of a file holds what traces hold. True where it cannot be read: then its reader says why."""
    if Path(path).is_dir():
        return True
    pieces = chunks(path, quality=QualityLog())
    try:
        start = next(pieces, b"")
    except TorchdiagError:
        return True
    finally:
        pieces.close()
    return any(mark in bytes(start) for mark in _MARKS)
