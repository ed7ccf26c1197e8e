"""What a rule is: a check over facts, the family that decides who may blame first, and what it cannot do without."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum

from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts


class Family(IntEnum):
    """Kinds of bugs, in the order in which they may claim idle time: what one claims is gone for the later ones."""

    DATA = 1
    SYNC = 2
    TRANSFER = 3
    MEMORY = 4
    COMPILE = 5
    PAUSE = 6
    LAUNCH = 7
    COMMUNICATION = 8
    KERNEL = 9
    MEASUREMENT = 10


class Need(Enum):
    """What a rule cannot do without. Its value is what to record to have it."""

    DEVICE = "a device trace: ProfilerActivity.CUDA (or XPU, MTIA, HPU) among the activities"
    STACKS = "Python stacks: with_stack=True"
    SHAPES = "operator shapes: record_shapes=True"
    MEMORY = "memory events: profile_memory=True"
    STEPS = "several steps: call prof.step() at the end of each, with a warm-up step in the schedule"
    RANKS = "the traces of all ranks"
    RUN = "a run folder: `torchdiag profile`"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its id (`sync-item-scalar`), its module's docstring as documentation, and its check.

    `check` is a pure function of facts. It is called only where all that it `needs` is there.
    """

    id: str
    family: Family
    check: Callable[[Facts], Iterable[Suspect]]
    needs: frozenset[Need] = frozenset()
