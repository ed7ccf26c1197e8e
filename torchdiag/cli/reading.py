"""Reading a trace while what analyses it is imported, so that neither waits for the other."""

import gc
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module

from torchdiag.trace import load
from torchdiag.trace.columns import Trace
from torchdiag.trace.source import Progress

_SHORT_TURN_S = 0.0005
_OBJECTS_BETWEEN_COLLECTIONS = 100_000


def read(path: str, progress: Progress | None) -> Trace:
    """The trace at `path`, as `load.load` reads it; `torchdiag.api` is imported meanwhile."""
    # Modules stay, and so does what a trace is made of: a search for garbage finds none.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    # What fails here fails again where the caller imports it.
    threading.Thread(target=import_module, args=("torchdiag.api",), name="torchdiag-import", daemon=True).start()
    with _short_turns():
        return load.load(path, progress=progress)


@contextmanager
def _short_turns() -> Generator[None]:
    """Let threads of Python take short turns: those that read need few, which must not be long in coming."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SHORT_TURN_S)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
