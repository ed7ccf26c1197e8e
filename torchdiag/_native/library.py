"""The compiled library: where it is, and the types of its functions (headers in `native/`)."""

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

import numpy as np

from torchdiag.errors import TorchdiagError

NO_MEMORY = 1
"""What a function returns that has run out of memory."""


class Array(ctypes.Structure):
    """`td_array`: where `size` values lie."""

    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_int64))
    data: int | None
    size: int


class SparseArrays(ctypes.Structure):
    """`td_sparse`: rows and their values."""

    _fields_ = (("rows", Array), ("values", Array))
    rows: Array
    values: Array


class Texts(ctypes.Structure):
    """`td_texts`: the bytes of all texts and where each starts."""

    _fields_ = (("offsets", Array), ("bytes", Array))
    offsets: Array
    bytes: Array


class Note(ctypes.Structure):
    """`td_note`: one kind of damage."""

    _fields_ = (("code", ctypes.c_char_p), ("count", ctypes.c_int64), ("first_offset", ctypes.c_int64))
    code: bytes
    count: int
    first_offset: int


class TopLevel(ctypes.Structure):
    """`td_top_level`: a top-level key and its value."""

    _fields_ = (("document", ctypes.c_int32), ("key", Array), ("value", Array))
    document: int
    key: Array
    value: Array


class Columns(ctypes.Structure):
    """`td_columns`: everything a scan found but the arguments."""

    _fields_ = (
        ("name", Array),
        ("category", Array),
        ("track", Array),
        ("phase", Array),
        ("time", Array),
        ("duration", Array),
        ("flow_id", SparseArrays),
        ("names", Texts),
        ("categories", Texts),
        ("texts", Texts),
        ("identities", Texts),
        ("track_pid", Array),
        ("track_tid", Array),
        ("document_rows", Array),
        ("note_count", ctypes.c_int32),
        ("top_level_count", ctypes.c_int32),
        ("found_events", ctypes.c_int32),
    )
    name: Array
    category: Array
    track: Array
    phase: Array
    time: Array
    duration: Array
    flow_id: SparseArrays
    names: Texts
    categories: Texts
    texts: Texts
    identities: Texts
    track_pid: Array
    track_tid: Array
    document_rows: Array
    note_count: int
    top_level_count: int
    found_events: int


class Repaired(ctypes.Structure):
    """`td_repair_report`: what a repair did."""

    _fields_ = (
        ("kept", ctypes.c_int64),
        ("mended", ctypes.c_int64),
        ("dropped", ctypes.c_int64),
        ("note_count", ctypes.c_int32),
        ("found_events", ctypes.c_int32),
    )
    kept: int
    mended: int
    dropped: int
    note_count: int
    found_events: int


_HANDLE = ctypes.c_void_p
_NUMBERS = ctypes.c_void_p
_FUNCTIONS: dict[str, tuple[object, ...]] = {
    # name: what it returns, what it takes
    "td_scan_new": (_HANDLE, ctypes.c_int32, ctypes.c_int64, ctypes.c_int32),
    "td_scan_key": (ctypes.c_int, _HANDLE, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_int32),
    "td_scan_feed": (ctypes.c_int, _HANDLE, ctypes.c_void_p, ctypes.c_int64),
    "td_scan_finish": (ctypes.c_int, _HANDLE),
    "td_scan_columns": (ctypes.c_int, _HANDLE, ctypes.POINTER(Columns)),
    "td_scan_argument": (ctypes.c_int, _HANDLE, ctypes.c_int32, ctypes.POINTER(SparseArrays)),
    "td_scan_note": (ctypes.c_int, _HANDLE, ctypes.c_int32, ctypes.POINTER(Note)),
    "td_scan_top_level": (ctypes.c_int, _HANDLE, ctypes.c_int32, ctypes.POINTER(TopLevel)),
    "td_scan_free": (None, _HANDLE),
    "td_repair_new": (_HANDLE, ctypes.c_int64),
    "td_repair_feed": (ctypes.c_int, _HANDLE, ctypes.c_void_p, ctypes.c_int64),
    "td_repair_finish": (ctypes.c_int, _HANDLE),
    "td_repair_output": (ctypes.c_int, _HANDLE, ctypes.POINTER(Array)),
    "td_repair_report_of": (ctypes.c_int, _HANDLE, ctypes.POINTER(Repaired)),
    "td_repair_note": (ctypes.c_int, _HANDLE, ctypes.c_int32, ctypes.POINTER(Note)),
    "td_repair_free": (None, _HANDLE),
    "td_groups": (ctypes.c_int64, ctypes.c_int64, ctypes.c_int32, *[_NUMBERS] * 3),
    "td_kinds": (None, ctypes.c_int64, *[_NUMBERS] * 5, ctypes.c_uint8, _NUMBERS),
    "td_places": (None, ctypes.c_int64, _NUMBERS, ctypes.c_int64, *[_NUMBERS] * 2),
    "td_values_at": (
        None,
        *(ctypes.c_int64, _NUMBERS, _NUMBERS, ctypes.c_int32, ctypes.c_int64),
        *[_NUMBERS] * 3,
    ),
    "td_touching": (ctypes.c_int64, ctypes.c_int64, *[_NUMBERS] * 6, ctypes.c_int64, *[_NUMBERS] * 3),
    "td_outlasting": (None, ctypes.c_int64, *[_NUMBERS] * 4),
    "td_innermost_at": (None, ctypes.c_int64, *[_NUMBERS] * 4, ctypes.c_int64, *[_NUMBERS] * 2),
    "td_innermost": (ctypes.c_int64, ctypes.c_int64, *[_NUMBERS] * 4, ctypes.c_int64, *[_NUMBERS] * 6),
    "td_replay_order": (ctypes.c_int, ctypes.c_int64, _NUMBERS, ctypes.c_int64, *[_NUMBERS] * 4),
    "td_replay_times": (ctypes.c_int, ctypes.c_int64, _NUMBERS, ctypes.c_int64, *[_NUMBERS] * 4),
}


@cache
def load() -> ctypes.CDLL:
    """The library. Raises TorchdiagError when it was not built."""
    path = Path(__file__).with_name("libtorchdiag.so")
    try:
        library = ctypes.CDLL(os.fspath(path))
    except OSError as error:
        raise TorchdiagError(
            f"the native part of torchdiag cannot be loaded from {path} ({error}); install it with `pip install .` on "
            f"this machine ({sys.platform})"
        ) from error
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def check(status: int) -> None:
    """Raise what a status other than 0 stands for: MemoryError, or ValueError for an argument it cannot take."""
    if status == NO_MEMORY:
        raise MemoryError("there is not enough memory to read the trace")
    if status != 0:
        raise ValueError(f"the native reader refused an argument (status {status})")


def address(text: bytes | bytearray | memoryview) -> int:
    """Where the bytes of a contiguous buffer lie; valid as long as the caller holds the buffer."""
    return np.frombuffer(text, np.uint8).ctypes.data


def copied(array: Array) -> bytes:
    """The bytes of a native array."""
    return ctypes.string_at(array.data, array.size) if array.data and array.size else b""
