"""Writing a table as a Parquet file, without the 55 MB of a library that does it.

One row group, one page a column, plain values, nothing compressed: the tables are small, and every reader of Parquet
reads it. The footer is in Thrift's compact protocol. https://parquet.apache.org/docs/file-format/
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from torchdiag.suite.rows import Cell, ColumnType

_MAGIC: Final = b"PAR1"
_PHYSICAL: Final[dict[ColumnType, int]] = {int: 2, float: 5, str: 6}
"""Of the format's types: INT64, DOUBLE, BYTE_ARRAY."""
_OPTIONAL: Final = 1
_UTF8: Final = 0
_PLAIN, _RLE = 0, 3
_DATA_PAGE: Final = 0
_UNCOMPRESSED: Final = 0

# Thrift's compact types.
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12


class _Struct:
    """A Thrift struct in the making: fields in ascending order of their numbers."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._last = 0

    def i32(self, number: int, value: int) -> "_Struct":
        return self._field(number, _I32, _varint(_zigzag(value)))

    def i64(self, number: int, value: int) -> "_Struct":
        return self._field(number, _I64, _varint(_zigzag(value)))

    def text(self, number: int, value: str) -> "_Struct":
        return self._field(number, _BINARY, _text(value))

    def struct(self, number: int, value: "_Struct") -> "_Struct":
        return self._field(number, _STRUCT, value.done())

    def list(self, number: int, kind: int, values: Sequence[bytes]) -> "_Struct":
        count = len(values)
        head = bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + _varint(count)
        return self._field(number, _LIST, head + b"".join(values))

    def done(self) -> bytes:
        return bytes(self._bytes) + b"\0"

    def _field(self, number: int, kind: int, content: bytes) -> "_Struct":
        # All numbers here follow closely enough for the short form.
        self._bytes += bytes([(number - self._last) << 4 | kind]) + content
        self._last = number
        return self


def to_parquet(columns: Mapping[str, ColumnType], rows: Sequence[Mapping[str, Cell]]) -> bytes:
    """The file: every column may hold nothing (None); whole numbers must fit into 64 bits."""
    content = bytearray(_MAGIC)
    chunks: list[bytes] = []
    sizes = 0
    for name, kind in columns.items():
        offset = len(content)
        page = _page(kind, [row[name] for row in rows])
        content += page
        sizes += len(page)
        chunks.append(_chunk(name, kind, len(rows), offset, len(page)))
    footer = _footer(columns, len(rows), chunks, sizes)
    return bytes(content) + footer + struct.pack("<I", len(footer)) + _MAGIC


def _page(kind: ColumnType, cells: Sequence[Cell]) -> bytes:
    present = [cell for cell in cells if cell is not None]
    levels = _levels([cell is not None for cell in cells])
    data = struct.pack("<I", len(levels)) + levels + b"".join(_values(kind, present))
    about = _Struct().i32(1, len(cells)).i32(2, _PLAIN).i32(3, _RLE).i32(4, _RLE)
    header = _Struct().i32(1, _DATA_PAGE).i32(2, len(data)).i32(3, len(data)).struct(5, about)
    return header.done() + data


def _values(kind: ColumnType, cells: Iterable[Cell]) -> Iterable[bytes]:
    for cell in cells:
        if kind is str:
            encoded = str(cell).encode("utf-8", "backslashreplace")
            yield struct.pack("<I", len(encoded)) + encoded
        else:
            yield struct.pack("<q" if kind is int else "<d", cell)


def _levels(present: Sequence[bool]) -> bytes:
    """Which cells are there, as runs of equal bits: their length doubled, then the bit in a byte."""
    runs: list[tuple[bool, int]] = []
    for bit in present:
        if runs and runs[-1][0] == bit:
            runs[-1] = (bit, runs[-1][1] + 1)
        else:
            runs.append((bit, 1))
    return b"".join(_varint(count << 1) + bytes([bit]) for bit, count in runs)


def _chunk(name: str, kind: ColumnType, rows: int, offset: int, size: int) -> bytes:
    about = (
        _Struct()
        .i32(1, _PHYSICAL[kind])
        .list(2, _I32, [_varint(_zigzag(_PLAIN)), _varint(_zigzag(_RLE))])
        .list(3, _BINARY, [_text(name)])
        .i32(4, _UNCOMPRESSED)
        .i64(5, rows)
        .i64(6, size)
        .i64(7, size)
        .i64(9, offset)
    )
    return _Struct().i64(2, offset).struct(3, about).done()


def _footer(columns: Mapping[str, ColumnType], rows: int, chunks: Sequence[bytes], sizes: int) -> bytes:
    schema = [_Struct().text(4, "schema").i32(5, len(columns)).done()]
    for name, kind in columns.items():
        column = _Struct().i32(1, _PHYSICAL[kind]).i32(3, _OPTIONAL).text(4, name)
        schema.append((column.i32(6, _UTF8) if kind is str else column).done())
    group = _Struct().list(1, _STRUCT, chunks).i64(2, sizes).i64(3, rows).done()
    groups = [group] if rows else []
    return (
        _Struct().i32(1, 1).list(2, _STRUCT, schema).i64(3, rows).list(4, _STRUCT, groups).text(6, "torchdiag").done()
    )


def _text(value: str) -> bytes:
    encoded = value.encode()
    return _varint(len(encoded)) + encoded


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
