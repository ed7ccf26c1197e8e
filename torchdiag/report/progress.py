"""How far the reading of a trace has come, on a terminal and only when one has to wait."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torchdiag.trace.source import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

PATIENCE_S = 1.0
"""Work that is shorter shows nothing."""


@contextmanager
def reading(what: str) -> Generator[Progress | None]:
    """Yield a callback for `trace.load` that draws a bar called `what` on standard error; None where that is no
    terminal.

    The bar goes away with the context.
    """
    if not sys.stderr.isatty():
        yield None
        return
    bar = _LateBar(what)
    try:
        yield bar.tell
    finally:
        bar.stop()


class _LateBar:
    def __init__(self, what: str) -> None:
        self._what = what
        self._began = time.monotonic()
        self._shown: tuple[Bar, TaskID] | None = None

    def tell(self, done_bytes: int, total_bytes: int | None) -> None:
        if self._shown is None:
            if time.monotonic() - self._began < PATIENCE_S:
                return
            self._shown = _started(self._what, total_bytes)
        bar, task = self._shown
        bar.update(task, completed=done_bytes, total=total_bytes)

    def stop(self) -> None:
        if self._shown is not None:
            self._shown[0].stop()


def _started(what: str, total_bytes: int | None) -> "tuple[Bar, TaskID]":
    from rich.console import Console  # noqa: PLC0415 - rich takes longer to import than most traces take to read
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    bar = Bar(
        TextColumn("reading {task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.start()
    return bar, bar.add_task(what, total=total_bytes)
