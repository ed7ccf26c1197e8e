"""A limit on the resident memory of what a process has started.

Measured, not `setrlimit`: limits of the kernel's are on address space, of which CUDA reserves hundreds of gigabytes
without using them.
"""

import contextlib
import os
import signal
import threading
from pathlib import Path
from typing import Final

_EVERY_S: Final = 0.2
_PROC: Final = Path("/proc")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_SHARE: Final = 0.9


class MemoryWatch:
    """While it is entered, ends the children of this process and theirs as soon as they use more than `limit_bytes`.

    `exceeded_bytes` is how much they used then, None while they have not. Where there is no /proc, nothing is watched.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        self.exceeded_bytes: int | None = None

    def __enter__(self) -> "MemoryWatch":
        if (_PROC / "self" / "statm").is_file():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_S):
            family = descendants(os.getpid())
            used = sum(resident_bytes(pid) for pid in family)
            if used > self._limit_bytes:
                self.exceeded_bytes = used
                for pid in family:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                return


def descendants(pid: int) -> list[int]:
    """The children of a process, theirs, and so on; those that end meanwhile may be missing."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for task in (_PROC / str(pid) / "task").iterdir():
            children += [int(number) for number in (task / "children").read_text().split()]
    return children


def resident_bytes(pid: int) -> int:
    """Memory of the process's own, and what it shares by memory alone; files that it has mapped do not count."""
    try:
        pages = [int(number) for number in (_PROC / str(pid) / "statm").read_text().split()]
    except (OSError, ValueError):
        return 0
    return (pages[1] - pages[2]) * _PAGE + _shared_bytes(pid)


def _shared_bytes(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("RssShmem:"):
                return int(line.split()[1]) * 1024
    return 0


def default_bytes(jobs: int) -> int | None:
    """The limit of each of `jobs` runs at once: nine tenths of what this machine, or container, has."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    for file in _LIMITS:
        with contextlib.suppress(OSError, ValueError):
            total = min(total, int(file.read_text()))
    return int(_SHARE * total / jobs)
