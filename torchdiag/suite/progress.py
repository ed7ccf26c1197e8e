"""How far a suite's run has come, on a terminal: what runs, how many are done, and how long the rest will take."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torchdiag.report.plain_text import plain, shorten
from torchdiag.suite.cases import Case
from torchdiag.suite.outcome import Outcome

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LONGEST = 60


class Silent:
    """Tells nobody."""

    def started(self, case: Case) -> None:
        """See `Listener`."""

    def said(self, case: Case, text: str) -> None:
        """See `Listener`."""

    def ended(self, done: Outcome) -> None:
        """See `Listener`."""


class Remaining:
    """How long the runs that are left will take: as long as those before, on the average."""

    def __init__(self, runs: int, jobs: int) -> None:
        self.left = runs
        self._jobs = jobs
        self._walls: list[float] = []
        self._began: dict[str, float] = {}

    def started(self, case: Case, now_s: float) -> None:
        """A run begins."""
        self._began[case.id] = now_s

    def ended(self, done: Outcome) -> None:
        """A run is over; one that was not made tells nothing of the others."""
        self.left -= 1
        self._began.pop(done.case.id, None)
        if done.status != "skipped":
            self._walls.append(done.wall_s)

    def seconds(self, now_s: float) -> float | None:
        """Seconds from now on; None while nothing is known."""
        if not self._walls:
            return None
        mean = sum(self._walls) / len(self._walls)
        spent = sum(min(now_s - began, mean) for began in self._began.values())
        return max((mean * self.left - spent) / self._jobs, 0.0)


class _Shown:
    """A bar on standard error; what fails is told above it."""

    def __init__(self, bar: "Progress", task: "TaskID", remaining: Remaining) -> None:
        self._bar = bar
        self._task = task
        self._remaining = remaining
        self._running: dict[str, str] = {}

    def started(self, case: Case) -> None:
        """See `Listener`."""
        self._running[case.id] = case.id
        self._remaining.started(case, time.monotonic())
        self._redraw()

    def said(self, case: Case, text: str) -> None:
        """See `Listener`."""
        self._running[case.id] = f"{case.id}: {text}"
        self._redraw()

    def ended(self, done: Outcome) -> None:
        """See `Listener`."""
        self._running.pop(done.case.id, None)
        self._remaining.ended(done)
        if done.status not in ("complete", "skipped"):
            self._bar.console.print(plain(f"{done.case.id}: {done.status}: {done.message}"), markup=False)
        self._bar.advance(self._task)
        self._redraw()

    def _redraw(self) -> None:
        text = "; ".join(self._running.values())
        self._bar.update(self._task, description=shorten(plain(text), _LONGEST))


def _clock(seconds: float) -> str:
    """`12 s`, `3 min`, `2 h 10 min`."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def shown(total: int, left: int, jobs: int) -> Generator["Silent | _Shown"]:
    """Yield a listener that draws a bar on standard error, `left` of `total` runs to go; silent on no terminal."""
    if not sys.stderr.isatty():
        yield Silent()
        return
    from rich.console import Console  # noqa: PLC0415 - only where something is drawn
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    remaining = Remaining(left, jobs)

    class Left(ProgressColumn):
        """The time left, anew each time the bar is drawn."""

        def render(self, task: Task) -> Text:
            """What stands in the column."""
            seconds = remaining.seconds(time.monotonic())
            return Text("" if seconds is None else f"{_clock(seconds)} left")

    bar = Progress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        Left(),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        yield _Shown(bar, bar.add_task("", total=total, completed=total - left), remaining)
