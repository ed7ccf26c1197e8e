"""C++ names as people write them."""

import ctypes
from functools import cache


@cache
def _demangler() -> tuple[ctypes.CDLL, ctypes.CDLL] | None:
    try:
        runtime, libc = ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL(None)
    except OSError:
        return None
    # A plain pointer, since the text must be freed.
    runtime.__cxa_demangle.restype = ctypes.c_void_p
    runtime.__cxa_demangle.argtypes = (
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_int),
    )
    libc.free.argtypes = (ctypes.c_void_p,)
    libc.free.restype = None
    return runtime, libc


@cache
def demangle(name: str) -> str:
    """The C++ name of a mangled symbol (`_ZN3c105ErrorC1Ev`) or type (`N3c105ErrorE`).

    `name` itself where it is none, or where this machine has no GNU C++ runtime to ask.
    """
    libraries = _demangler()
    if libraries is None or not name or "\0" in name:
        return name
    runtime, libc = libraries
    status = ctypes.c_int()
    text: int | None = runtime.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if text is None:
        return name
    try:
        return ctypes.string_at(text).decode("utf-8", "replace") if status.value == 0 else name
    finally:
        libc.free(text)
