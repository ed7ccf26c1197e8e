"""A trace in a form that Perfetto reads: the file itself when it is sound, a repaired copy otherwise."""

import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from torchdiag.cli.mending import mend
from torchdiag.cli.new_file import gzip_writer
from torchdiag.report import repair_words
from torchdiag.trace import source
from torchdiag.trace.quality import QualityLog

_HARMLESS = {"string-number", "integer-overflow", "duplicate-key", "deep-nesting", "several-ranks"}
"""Oddities that are valid JSON all the same."""


@contextmanager
def viewable(trace: str) -> Generator[tuple[BinaryIO, str]]:
    """Yield an open file that Perfetto can read and a name for it; what was mended is told on standard error.

    A repaired copy has no name in the file system, so nothing is left of it however the process ends.
    """
    # What is no regular file can be read only once.
    if trace != source.STANDARD_INPUT and Path(trace).is_file() and _is_sound(trace):
        with Path(trace).open("rb") as file:
            yield file, Path(trace).name
        return
    with tempfile.TemporaryFile(prefix="torchdiag-") as copy:
        file = cast(BinaryIO, copy)
        quality = QualityLog()
        with gzip_writer(file) as packer:
            report = mend(trace, packer.write, quality)
        if any(note.code not in _HARMLESS for note in quality.notes):
            print("the trace is damaged; a repaired copy is shown", file=sys.stderr)
            for line in repair_words.lines(report, quality.notes):
                print(line, file=sys.stderr)
        file.flush()
        yield file, _copy_name(trace)


def _is_sound(trace: str) -> bool:
    """Whether Perfetto can read the file as it is: plain or gzip, and nothing in it to mend."""
    quality = QualityLog()
    mend(trace, lambda _: None, quality)
    return source.is_plain_or_gzip(trace) and all(note.code in _HARMLESS for note in quality.notes)


def _copy_name(trace: str) -> str:
    if trace == source.STANDARD_INPUT:
        return "trace.json.gz"
    name = Path(trace).name
    for suffix in (".gz", ".zip", ".json"):
        name = name.removesuffix(suffix)
    return f"{name}.repaired.json.gz"
