"""C++ exceptions, through a small library that is preloaded into the process (`native/probe/throw_probe.h`; Linux).

    environment = throw_probe.environment()            # here: what a child process needs to have the probe
    subprocess.run([...], env={**os.environ, **environment})

    throw_probe.start()                                # in the child: it is off until then
    ...
    throw_probe.stop()
    records = throw_probe.drain()

A throw is recorded with its type, thread and time, and with where in which library it was thrown; so is the time until
the first catch. A throw that C++ passes on as a Python exception is seen here once and by `ExceptionRecorder` once.

What it cannot see: exceptions of code that brings its own C++ runtime (linked statically, or loaded with
RTLD_DEEPBIND), rethrows (`throw;`, `std::rethrow_exception`: these are no new exceptions), and any of a statically
linked program, which preloads nothing. It is not offered on musl, for which it is neither built nor tested.
"""

import ctypes
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import torchdiag._native
from torchdiag.capture.cpp_names import demangle
from torchdiag.errors import TorchdiagError

_VERSION: Final = 1
_NAME_BYTES: Final = 152
_THROWN: Final = 0
_BATCH: Final = 1024
_TEXT_BYTES: Final = 4096

LIBRARY: Final = Path(torchdiag._native.__file__).with_name("libtorchdiag_throw.so")
"""The library to be preloaded; it exists where torchdiag was built with a C++ compiler on Linux."""


class ThrowEvent(ctypes.Structure):
    """`td_throw_event`: a throw or a catch as the probe wrote it."""

    _fields_ = (
        ("time_ns", ctypes.c_uint64),
        ("object", ctypes.c_uint64),
        ("caller", ctypes.c_uint64),
        ("thread_id", ctypes.c_int32),
        ("kind", ctypes.c_uint16),
        ("name_length", ctypes.c_uint16),
        ("name", ctypes.c_ubyte * _NAME_BYTES),
    )
    time_ns: int
    object: int
    caller: int
    thread_id: int
    kind: int
    name_length: int
    name: ctypes.Array[ctypes.c_ubyte]


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether the probe works. `loadable`: in a child with `environment()`; `loaded`: in this process, now.

    `reason` says in a sentence why it is not loaded, and what to do; empty if it is.
    """

    loadable: bool
    loaded: bool
    reason: str


@dataclass(frozen=True, slots=True)
class CppThrow:
    """One C++ exception.

    `time_ns` and `caught_ns` (None if no catch was seen by the same `drain`) are of CLOCK_MONOTONIC, which on Linux is
    `clock.now_ns`; `thread_id` is the operating system's. `type` is the C++ name. `library` is the path of the library
    with the throw at `library_offset` bytes from its load address (what `addr2line` takes), `symbol` the C++ name of
    the exported function that it is in; both are empty where unknown (compilers often put the throwing part of a
    function apart from it, without a name).
    """

    time_ns: int
    caught_ns: int | None
    thread_id: int
    type: str
    library: str
    library_offset: int
    symbol: str


@dataclass(frozen=True, slots=True)
class CppThrows:
    """What the probe recorded since the last `drain()`, in order of time.

    `thrown` and `dropped` count since the process began, while the probe was on: all exceptions, and those among them
    that found the buffer full and are in no record.
    """

    throws: tuple[CppThrow, ...]
    thrown: int
    dropped: int


def available() -> Availability:
    """Whether the probe works here, and why not."""
    if sys.platform != "linux":
        return Availability(False, False, f"C++ exceptions can be recorded on Linux only, not on {sys.platform}.")
    if not LIBRARY.is_file():
        reason = (
            f"The probe of C++ exceptions was not built ({LIBRARY} is missing): install a C++ compiler and torchdiag "
            "from its source."
        )
        return Availability(False, False, reason)
    if platform.libc_ver()[0] != "glibc":
        reason = "C++ exceptions can be recorded in a Python linked against glibc only (not musl, not static)."
        return Availability(False, False, reason)
    if any(mark in str(LIBRARY) for mark in " :\n"):
        reason = f"The path {LIBRARY} cannot be preloaded: move the installation to one without spaces and colons."
        return Availability(False, False, reason)
    if _loaded() is None:
        return Availability(True, False, "The probe of C++ exceptions was not preloaded into this process.")
    return Availability(True, True, "")


def environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that a child process needs in addition to `base` (this process's environment if None).

    What `base` preloads already stays, and stays first, as sanitizers demand. The child's own children inherit the
    probe; they are not slower for it, since it is off. Raises `TorchdiagError` where the probe cannot be loaded.
    """
    state = available()
    if not state.loadable:
        raise TorchdiagError(state.reason)
    preloaded = (os.environ if base is None else base).get("LD_PRELOAD", "")
    names = [name for name in preloaded.replace(":", " ").split() if name != str(LIBRARY)]
    return {"LD_PRELOAD": ":".join([*names, str(LIBRARY)])}


def start() -> None:
    """Record from now on, in all threads. Raises `TorchdiagError` if the probe is not loaded into this process."""
    _library().td_throw_enable(1)


def stop() -> None:
    """Record no more; what was recorded waits to be drained. Harmless where the probe is not loaded."""
    library = _loaded()
    if library is not None:
        library.td_throw_enable(0)


def counts() -> tuple[int, int]:
    """`thrown` and `dropped`, as in `CppThrows`. Raises `TorchdiagError` if the probe is not loaded."""
    library = _library()
    return library.td_throw_thrown(), library.td_throw_dropped()


def drain() -> CppThrows:
    """Take what was recorded out of the probe's buffer. Raises `TorchdiagError` if the probe is not loaded."""
    events = drain_events()
    thrown, dropped = counts()
    return CppThrows(described(events), thrown, dropped)


def drain_events() -> list[ThrowEvent]:
    """What was recorded, unexplained: quicker than `drain`, for use between steps; `described` explains later."""
    library = _library()
    events: list[ThrowEvent] = []
    batch = (ThrowEvent * _BATCH)()
    while True:
        count = library.td_throw_drain(batch, _BATCH)
        # Copied, since an element of the batch keeps all of the batch.
        events.extend(ThrowEvent.from_buffer_copy(event) for event in batch[:count])
        if count < _BATCH:
            return events


def described(events: list[ThrowEvent]) -> tuple[CppThrow, ...]:
    """The throws among `events`, each with its catch if that is among them too, in order of time."""
    pending: dict[tuple[int, int], int] = {}
    caught: dict[int, int] = {}
    throws: list[tuple[int, ThrowEvent]] = []
    for index, event in enumerate(events):
        exception = (event.thread_id, event.object)
        if event.kind == _THROWN:
            throws.append((index, event))
            pending[exception] = index
        elif exception in pending:
            caught[pending.pop(exception)] = event.time_ns
    places: dict[int, tuple[str, str, int]] = {}
    records: list[CppThrow] = []
    for index, event in throws:
        place = places.get(event.caller)
        if place is None:
            place = places[event.caller] = _locate(event.caller)
        library, symbol, offset = place
        name = _type_name(event)
        records.append(CppThrow(event.time_ns, caught.get(index), event.thread_id, name, library, offset, symbol))
    return tuple(sorted(records, key=lambda record: record.time_ns))


def _type_name(event: ThrowEvent) -> str:
    raw = bytes(event.name)[: min(event.name_length, _NAME_BYTES)].decode("utf-8", "replace")
    if event.name_length > _NAME_BYTES:
        return raw + "..."
    # GCC marks types of which each library has its own copy.
    return demangle(raw.removeprefix("*"))


def _locate(caller: int) -> tuple[str, str, int]:
    library = ctypes.create_string_buffer(_TEXT_BYTES)
    symbol = ctypes.create_string_buffer(_TEXT_BYTES)
    offset = ctypes.c_uint64()
    found = _library().td_throw_locate(caller, library, _TEXT_BYTES, symbol, _TEXT_BYTES, ctypes.byref(offset))
    if not found:
        return "", "", 0
    return os.fsdecode(library.value), demangle(symbol.value.decode("utf-8", "replace")), offset.value


@cache
def _loaded() -> ctypes.CDLL | None:
    """The library if it was preloaded: then, and only then, its functions are among the program's own."""
    if sys.platform != "linux":
        return None
    program = ctypes.CDLL(None)
    try:
        version = program.td_throw_version
    except AttributeError:
        return None
    version.restype = ctypes.c_uint32
    if version() != _VERSION:
        return None
    program.td_throw_enable.argtypes = (ctypes.c_int32,)
    program.td_throw_enable.restype = ctypes.c_int32
    program.td_throw_drain.argtypes = (ctypes.POINTER(ThrowEvent), ctypes.c_size_t)
    program.td_throw_drain.restype = ctypes.c_size_t
    program.td_throw_thrown.restype = ctypes.c_uint64
    program.td_throw_dropped.restype = ctypes.c_uint64
    text = ctypes.c_char_p, ctypes.c_size_t
    program.td_throw_locate.argtypes = (ctypes.c_uint64, *text, *text, ctypes.POINTER(ctypes.c_uint64))
    program.td_throw_locate.restype = ctypes.c_int32
    return program


def _library() -> ctypes.CDLL:
    library = _loaded()
    if library is None:
        raise TorchdiagError(available().reason + " Start it with the variables of throw_probe.environment().")
    return library
