"""A slow reader: stdlib json, one event after the other, into the columns of `torchdiag.trace.columns`."""

import gzip
import io
import json
import math
import re
import zipfile
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np

from torchdiag.trace.columns import MISSING, NO_TEXT, Args, Sparse, Strings, Trace, Tracks
from torchdiag.trace.vocabulary import FLOAT_ARGUMENTS, INT_ARGUMENTS, TEXT_ARGUMENTS

INT64 = range(-(2**63), 2**63)
WORD64 = range(-(2**63), 2**64)
DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
HEXADECIMAL = re.compile(r"[-+]?0[xX][0-9a-fA-F]+")
BLANKS = " \t\r\n"
NO_NUMBER_ID = -(2**63) + 1


class Number(str):
    """A JSON number, kept as the digits of the file."""

    __slots__ = ()


def text_of(path: str | Path) -> str:
    """The decompressed text of a trace: plain, gzip (any number of members) or a zip with one file."""
    data = Path(path).read_bytes()
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            (member,) = (name for name in archive.namelist() if not name.endswith("/"))
            data = archive.read(member)
    elif data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return data.decode("utf-8-sig")


def parse(text: str) -> tuple[list[Any], dict[str, Any]]:
    """The elements of `traceEvents` and the other top-level keys; numbers are `Number`.

    Raises json.JSONDecodeError where the text is no JSON (control characters in strings are let through).
    """

    def no_constant(word: str) -> Any:
        raise json.JSONDecodeError(f"{word} is no JSON", word, 0)

    document = json.loads(text, strict=False, parse_float=Number, parse_int=Number, parse_constant=no_constant)
    if isinstance(document, list):
        return document, {}
    return document.pop("traceEvents", None) or [], document


def nanoseconds(value: Any) -> int:
    """Decimal microseconds as integer nanoseconds, halves away from zero; MISSING where it is no number."""
    number = decimal_of(value)
    if number is None:
        return MISSING
    with localcontext(prec=200):
        result = int((number * 1000).to_integral_value(ROUND_HALF_UP))
    return result if result in INT64 else MISSING


def decimal_of(value: Any) -> Decimal | None:
    """The number that a JSON number is, or that a string holds written like one."""
    if not isinstance(value, str) or not DECIMAL.fullmatch(value.strip(BLANKS)):
        return None
    return Decimal(value.strip(BLANKS))


def whole_of(value: Any) -> int | None:
    """The integer that a JSON number is or that a string holds, hexadecimal too; None where it is not whole."""
    if is_text(value) and HEXADECIMAL.fullmatch(value.strip(BLANKS)):
        return int(value.strip(BLANKS), 16)
    number = decimal_of(value)
    return int(number) if number is not None and number == number.to_integral_value() else None


def integer_of(value: Any) -> int | None:
    """An integer argument as an int64, addresses above 2^63 in their bits; None where there is none."""
    whole = whole_of(value)
    if whole is None or whole not in WORD64:
        return None
    return whole if whole in INT64 else whole - 2**64


def place_of(value: Any) -> int | str | None:
    """A pid or tid: an int where there is a number that an int64 holds, else the text, else None."""
    whole = whole_of(value)
    if whole is not None and whole in INT64:
        return whole
    return str(value) if isinstance(value, str) else None


def raw_text(value: Any) -> str:
    """The content of a string, the JSON of anything else. White space of the file is not kept."""
    if isinstance(value, str):
        return str(value)
    return json.dumps(Literal.unwrap(value), ensure_ascii=False)


class Literal:
    """Turns `Number` back into what `json.dumps` writes without quotes."""

    @staticmethod
    def unwrap(value: Any) -> Any:
        if isinstance(value, Number):
            return int(value) if value.lstrip("-").isdigit() else float(value)
        if isinstance(value, list):
            return [Literal.unwrap(item) for item in value]
        if isinstance(value, dict):
            return {key: Literal.unwrap(item) for key, item in value.items()}
        return value


class Coder:
    """Gives each distinct text a number, in order of appearance."""

    def __init__(self) -> None:
        self.codes: dict[Any, int] = {}

    def code(self, text: Any) -> int:
        return self.codes.setdefault(text, len(self.codes))

    def strings(self) -> Strings:
        return Strings.of(list(self.codes))


def sparse(pairs: list[tuple[int, Any]], dtype: Any) -> Sparse[Any]:
    rows = np.array([row for row, _ in pairs], np.uint32)
    return Sparse(rows, np.array([value for _, value in pairs], dtype))


def keyed(tables: Iterable[dict[str, tuple[str, ...]]]) -> dict[str, list[str]]:
    """JSON key -> the argument columns that read it."""
    fields: dict[str, list[str]] = {}
    for table in tables:
        for field, keys in table.items():
            for key in keys:
                fields.setdefault(key, []).append(field)
    return fields


def read(path: str | Path) -> Trace:
    """Read a valid trace. Raises json.JSONDecodeError or UnicodeDecodeError where the text is damaged."""
    events, top_level = parse(text_of(path))
    return trace_of(events, top_level, str(path))


def trace_of(elements: list[Any], top_level: dict[str, Any], path: str = "") -> Trace:
    """The columns of parsed events; what is no JSON object is left out."""
    events = [event for event in elements if isinstance(event, dict)]
    names, categories, texts, tracks, odd_ids = Coder(), Coder(), Coder(), Coder(), Coder()
    fields = keyed((INT_ARGUMENTS, FLOAT_ARGUMENTS, TEXT_ARGUMENTS))
    columns: dict[str, list[tuple[int, Any]]] = {field: [] for found in fields.values() for field in found}
    flow: list[tuple[int, int]] = []
    name = np.full(len(events), NO_TEXT, np.int32)
    category = np.full(len(events), NO_TEXT, np.int32)
    track = np.zeros(len(events), np.int32)
    phase = np.zeros(len(events), np.uint8)
    ts_ns = np.full(len(events), MISSING, np.int64)
    dur_ns = np.full(len(events), MISSING, np.int64)
    for row, event in enumerate(events):
        if is_text(event.get("name")):
            name[row] = names.code(event["name"])
        if is_text(event.get("cat")):
            category[row] = categories.code(event["cat"])
        mark = event.get("ph")
        if is_text(mark) and mark and ord(mark[0]) < 128:
            phase[row] = ord(mark[0])
        track[row] = tracks.code((place_of(event.get("pid")), place_of(event.get("tid"))))
        ts_ns[row] = nanoseconds(event.get("ts"))
        dur_ns[row] = nanoseconds(event.get("dur"))
        if mark in ("s", "t", "f") and event.get("id") is not None:
            number = integer_of(event["id"])
            flow.append((row, NO_NUMBER_ID + odd_ids.code(raw_text(event["id"])) if number is None else number))
        arguments = event.get("args")
        if isinstance(arguments, dict):
            for field, value in arguments_of(arguments, fields):
                columns[field].append((row, texts.code(value) if field in TEXT_ARGUMENTS else value))
    args = {field: sparse(columns[field], dtype_of(field)) for field in columns}
    return Trace(
        path=path,
        names=names.strings(),
        categories=categories.strings(),
        texts=texts.strings(),
        tracks=Tracks([pid for pid, _ in tracks.codes], [tid for _, tid in tracks.codes]),
        name=name,
        category=category,
        track=track,
        phase=phase,
        ts_ns=ts_ns,
        dur_ns=dur_ns,
        args=Args(**args),
        flow_id=sparse(flow, np.int64),
        top_level={key: json.dumps(Literal.unwrap(value)).encode() for key, value in top_level.items()},
    )


def is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Number)


def dtype_of(field: str) -> Any:
    if field in INT_ARGUMENTS:
        return np.int64
    return np.float64 if field in FLOAT_ARGUMENTS else np.int32


def arguments_of(arguments: dict[str, Any], fields: dict[str, list[str]]) -> Iterable[tuple[str, Any]]:
    """The usable values of one event, one a column; of two spellings the later in the text wins."""
    found: dict[str, Any] = {}
    for key, value in arguments.items():
        for field in fields.get(key, ()):
            usable: Any = None
            if field in TEXT_ARGUMENTS:
                usable = None if value is None else raw_text(value)
            elif field in FLOAT_ARGUMENTS:
                number = decimal_of(value)
                usable = None if number is None or math.isinf(float(number)) else float(number)
            else:
                usable = integer_of(value)
            if usable is not None:
                found[field] = usable
    return found.items()
