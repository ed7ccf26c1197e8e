"""The steps that tell how the program runs once it is warm."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.first_uses import first_uses
from torchdiag.timeline.result import Step
from torchdiag.timeline.step_groups import median
from torchdiag.timeline.steps import submitted_ns

Times = NDArray[np.int64]

MOSTLY = 0.8
"""What is seen in this share of the steps counts as seen in every step."""
COLD_RATIO = 1.5
"""A first step that takes this many times the median of the others is a warm-up, whatever happens in it; one that does
other things than they do is a warm-up when it takes longer at all."""
LEAST_PACE = 0.5
"""Where work of a step that is left out covers more than the rest of what the host did in the others, the devices do
not tell one step from the next: the host's times are taken instead."""
COLD_SHARE = 0.15
"""A step that spends this share of its time on what happens once is a warm-up."""


@dataclass(frozen=True, eq=False)
class Steady:
    """The steps to judge by: all but a first one that warms up and partial ones.

    `number` int64[k]: their positions among `facts.steps`. `start_ns`, `end_ns` int64[k]: when the host was in each.
    `begun_ns`, `over_ns` int64[k]: from when the step before was over until this one is, which is when the host has
    left it and the devices have done what it launched. The host may be several steps ahead of the devices: then only
    these tell how long a step takes. Without steps the whole of the events is one (`whole`). `cold` says that only
    warm-up was recorded: nothing in it need happen again.
    """

    number: NDArray[np.int64]
    start_ns: Times
    end_ns: Times
    begun_ns: Times
    over_ns: Times
    whole: bool
    cold: bool

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def step_ns(self) -> float:
        """Mean time of a step."""
        return float((self.over_ns - self.begun_ns).mean())

    @property
    def total_ns(self) -> int:
        """Time of all of them."""
        return int((self.over_ns - self.begun_ns).sum())

    def of(self, instant: Times) -> NDArray[np.int64]:
        """int64[m]: which of these steps (0..k-1) each instant lies in, -1 for none."""
        return _place(self.start_ns, self.end_ns, instant)

    def worked_on(self, instant: Times) -> NDArray[np.int64]:
        """int64[m]: which of these steps (0..k-1) the devices had to do at each instant, -1 for none."""
        return _place(self.begun_ns, self.over_ns, instant)

    def per_step(self, instant: Times) -> NDArray[np.int64]:
        """int64[k]: how many of the instants lie in each step."""
        place = self.of(instant)
        return np.bincount(place[place >= 0], minlength=len(self)).astype(np.int64)

    def in_most(self, instant: Times) -> bool:
        """Whether some of the instants lie in (nearly) every step."""
        return bool(np.count_nonzero(self.per_step(instant)) >= MOSTLY * len(self))

    def rows(self, facts: Facts, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows that begin in one of these steps (work of devices: was launched there), in their order."""
        return rows[self.of(facts.get(handed_over_ns)[rows]) >= 0]


def handed_over_ns(facts: Facts) -> Times:
    """int64[n]: when each event of the trace began; for work of devices, when it was launched."""
    instant, activities = facts.trace.ts_ns.copy(), facts.partition.activities
    instant[activities.row] = submitted_ns(facts.trace, activities)
    return instant


def steady(facts: Facts) -> Steady:
    """The steps that tell how the program runs once it is warm."""
    steps = facts.steps
    if not steps or _beside_the_devices(facts):
        low, high = (np.array([instant], np.int64) for instant in extent(facts))
        return Steady(np.zeros(1, np.int64), low, high, low, high, whole=True, cold=False)
    kept = [index for index, step in enumerate(steps) if "partial" not in step.note]
    warm = [index for index in kept if index or not _warms_up(facts)]
    chosen = warm or kept or list(range(len(steps)))
    begun, over = (instants[chosen] for instants in paces(facts))
    start = np.array([steps[index].start_ns for index in chosen], np.int64)
    end = np.array([steps[index].end_ns for index in chosen], np.int64)
    end = np.maximum(_until_next(start, end), start + 1)
    if LEAST_PACE * (end - start).sum() > (over - begun).sum():
        begun, over = start, end
    return Steady(np.array(chosen, np.int64), start, end, begun, over, whole=False, cold=not warm)


def paces(facts: Facts) -> tuple[Times, Times]:
    """int64[n] each: from when each step is what is worked on until it is over, which may be at once."""
    trace, activities = facts.trace, facts.partition.activities
    start = np.array([step.start_ns for step in facts.steps], np.int64)
    end = np.maximum(_until_next(start, np.array([step.end_ns for step in facts.steps], np.int64)), start + 1)
    chosen = np.isin(activities.device, [device.device for device in facts.partition.devices])
    own = activities[np.flatnonzero(chosen & (activities.launch >= 0))]
    submitted = submitted_ns(trace, own)
    step = np.searchsorted(start, submitted, side="right") - 1
    inside = (step >= 0) & (submitted < end[-1])
    over = end.copy()
    np.maximum.at(over, step[inside], own.end_ns[inside])
    over = np.maximum.accumulate(over)
    begun = np.maximum(start, np.concatenate((start[:1], over[:-1])))
    return begun, over


def _beside_the_devices(facts: Facts) -> bool:
    """Whether steps that were found by their launches lie before what they launched: then they time the host alone."""
    if facts.steps_source != "period" or not facts.partition.devices:
        return False
    low, high = extent(facts)
    within = sum(max(min(step.end_ns, high) - max(step.start_ns, low), 0) for step in facts.steps)
    busy = sum((step.gpu_busy or 0.0) * (step.end_ns - step.start_ns) for step in facts.steps)
    worked = sum(device.states.compute for device in facts.partition.devices) / len(facts.partition.devices)
    return within < (high - low) / 2 and busy < worked / 4


def _place(start: Times, end: Times, instant: Times) -> NDArray[np.int64]:
    place = np.searchsorted(start, instant, side="right") - 1
    return np.where((place >= 0) & (instant < end[np.maximum(place, 0)]), place, -1)


def _until_next(start: Times, end: Times) -> Times:
    """Steps that overlap are parted where the next one begins."""
    return np.minimum(end, np.append(start[1:], np.iinfo(np.int64).max))


def _warms_up(facts: Facts) -> bool:
    steps = facts.steps
    if len(steps) < 2:
        return False
    others = median([step.end_ns - step.start_ns for step in steps[1:]])
    ratio = COLD_RATIO if "first" not in steps[0].note else 1.0
    return steps[0].end_ns - steps[0].start_ns > ratio * others or _share_of_first_uses(facts, steps[0]) > COLD_SHARE


def _share_of_first_uses(facts: Facts, step: Step) -> float:
    """Share (0..1) of a step's time that goes into what happens once."""
    rows = facts.get(first_uses)
    start = np.clip(facts.trace.ts_ns[rows], step.start_ns, step.end_ns)
    end = np.clip(facts.trace.ts_ns[rows] + facts.trace.dur_ns[rows], step.start_ns, step.end_ns)
    return intervals.length(*intervals.union(start, end)) / max(step.end_ns - step.start_ns, 1)


def extent(facts: Facts) -> tuple[int, int]:
    """Start and end of what the devices were watched for; of all host events without a device."""
    windows = [device.window for device in facts.partition.devices]
    if windows:
        return min(window.start_ns for window in windows), max(window.end_ns for window in windows)
    trace = facts.trace
    rows = np.flatnonzero(trace.kind != 0)
    if not len(rows):
        return 0, 1
    start = int(trace.ts_ns[rows].min())
    return start, max(int((trace.ts_ns[rows] + trace.dur_ns[rows]).max()), start + 1)
