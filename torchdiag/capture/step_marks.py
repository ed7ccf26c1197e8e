"""Where the steps of a recording begin and end."""

from collections.abc import Callable

from torchdiag.capture.clock import now_ns


class StepMarks:
    """Counts steps. `index` is the step in progress, from 0; what is recorded now belongs to it."""

    def __init__(self, clock: Callable[[], int] = now_ns) -> None:
        self._clock = clock
        self._marks = [clock()]
        self.index = 0

    def step(self) -> None:
        """The step in progress is over, the next one begins."""
        self._marks.append(self._clock())
        self.index += 1

    def bounds(self, index: int, now: int) -> tuple[int, int]:
        """Start and end of a step, ns; a step still in progress ends `now`."""
        end = self._marks[index + 1] if index + 1 < len(self._marks) else now
        return self._marks[index], end

    def listed(self, has_records: bool) -> range:
        """The steps to report: those finished, and the one in progress if it is the only one or has records."""
        return range(self.index + 1 if has_records or self.index == 0 else self.index)
