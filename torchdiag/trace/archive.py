"""A zip archive that holds one trace."""

import os
import zipfile
from collections.abc import Iterator

from torchdiag.trace.inflate import unzip_member
from torchdiag.trace.quality import QualityLog, UnreadableTraceError
from torchdiag.trace.supply import BLOCK, Supply

_ENCRYPTED = 0x1
_LOCAL_HEADER_BYTES = 30
_NAMES_SHOWN = 8


def unzip(descriptor: int, supply: Supply, quality: QualityLog) -> Iterator[bytes]:
    """The content of the one trace in the archive open as `descriptor`, whose bytes `supply` gives.

    Raises UnreadableTraceError, without the path in front, when there is none or more than one.
    """
    if not supply.rewindable:
        raise UnreadableTraceError("a zip archive has its directory at the end; save it to a file and name that")
    try:
        # The descriptor may be shared (standard input), so it is not closed here.
        with os.fdopen(descriptor, "rb", closefd=False) as file, zipfile.ZipFile(file) as archive:
            member = _only_trace(archive)
    except zipfile.BadZipFile as error:
        raise UnreadableTraceError(
            f"the zip archive is damaged ({error}); unpack what is left of it, for instance with `zip -FF`"
        ) from error
    if member.flag_bits & _ENCRYPTED:
        raise UnreadableTraceError(f"{member.filename!r} in the zip archive is encrypted; unpack it first")
    header = supply.rewound(member.header_offset).peek(_LOCAL_HEADER_BYTES)
    name_bytes, extra_bytes = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
    data = supply.rewound(member.header_offset + _LOCAL_HEADER_BYTES + name_bytes + extra_bytes)
    if member.compress_type == zipfile.ZIP_DEFLATED:
        return unzip_member(data, member.CRC, quality)
    if member.compress_type == zipfile.ZIP_STORED:
        return _first(data, member.file_size)
    raise UnreadableTraceError(
        f"{member.filename!r} in the zip archive is compressed in a way that is not read here "
        f"(method {member.compress_type}); unpack it first"
    )


def _only_trace(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    members = [
        member for member in archive.infolist() if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    ]
    traces = [member for member in members if member.filename.lower().endswith((".json", ".json.gz"))]
    if len(members) == 1:
        return members[0]
    if len(traces) == 1:
        return traces[0]
    if not members:
        raise UnreadableTraceError("the zip archive holds no file")
    names = [repr(member.filename) for member in traces or members]
    shown = ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
    raise UnreadableTraceError(f"the zip archive holds {len(names)} files; unpack it and name one of them: {shown}")


def _first(supply: Supply, size: int) -> Iterator[bytes]:
    """The first `size` bytes."""
    while size and (block := supply.block(min(size, BLOCK))):
        size -= len(block)
        yield block
