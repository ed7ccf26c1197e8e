"""One trace and every fact that was asked about it.

A fact is a pure function of `Facts`, wherever it is defined; `facts.get(function)` works it out once. Rules share
facts that way without anybody listing them.
"""

from collections.abc import Callable
from typing import Any, Literal, Self, TypeVar, cast

from torchdiag.history.run_folder import RunFolder
from torchdiag.timeline import health as healths
from torchdiag.timeline import partition as partitions
from torchdiag.timeline import steps as step_tables
from torchdiag.timeline import summary as summaries
from torchdiag.timeline.partition import Partition
from torchdiag.timeline.result import Step
from torchdiag.trace.columns import Trace

T = TypeVar("T")


class Facts:
    """A trace, its partition and its steps; `run` is the run folder it was recorded in, None for a trace alone.

    `steps_source` is "marks", "period" or "none"; `summary` tells what was read and holds the quality notes.
    """

    def __init__(
        self,
        trace: Trace,
        partition: Partition,
        steps: tuple[Step, ...],
        steps_source: Literal["marks", "period", "none"],
        run: RunFolder | None = None,
    ) -> None:
        self.trace = trace
        self.partition = partition
        self.steps = steps
        self.steps_source: Literal["marks", "period", "none"] = steps_source
        self.run = run
        health = healths.health(trace, partition.activities, steps, overruns=partition.overruns)
        self.summary = summaries.summary(trace, health)
        self._known: dict[Callable[[Facts], Any], Any] = {}

    @classmethod
    def of(cls, trace: Trace, run: RunFolder | None = None) -> Self:
        """The facts of a whole trace."""
        partition = partitions.partition(trace)
        steps, source = step_tables.steps(trace, partition.activities, partition.selected)
        return cls(trace, partition, steps, source, run)

    def get(self, fact: "Callable[[Facts], T]") -> T:
        """The value of a fact, worked out when it is first asked for."""
        if fact not in self._known:
            self._known[fact] = fact(self)
        return cast(T, self._known[fact])

    def has_quality(self, code: str) -> bool:
        """Whether the reader or the partition noted `code`."""
        return any(note.code == code for note in self.summary.quality)
