"""Whether steps wait for batches: always, now and then, or every so many steps."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.batch_waits import BatchWaits, batch_waits
from torchdiag.timeline.facts.epoch_starts import epoch_starts
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.steady import MOSTLY, steady

Mask = NDArray[np.bool_]

WORTH = 0.02
"""A share of the steps below that is not worth a word."""
WORTH_WITHOUT_DEVICE = 0.05
"""Without a device nothing shows whether anything waits: then the share of the steps must be larger."""
LATE_NS = 200_000
"""Handing over a batch that is ready takes tens of microseconds; a shorter wait is no wait."""
LONG = 0.05
"""A wait that idles the devices for this share of a step is long ..."""
LONGER = 3
"""... if it is that many times the usual one."""
SEVERAL = 3
"""Without known steps, so many batches are more than the first ones."""
PERIODS = 3
"""So many long waits at equal distances are no accident."""


@dataclass(frozen=True, eq=False)
class BatchStalls:
    """How the waits for batches hold up the steps.

    `waits` are those that idle the devices. `share` (0..1) of the steps that the devices idle for them. `in_process`:
    whether most batches are made by the thread that waits. `steps_waiting`: how many steps wait for a share of WORTH.
    `always`: whether those are (nearly) all steps. `repeated`: whether that is more than the beginning of an epoch.
    `period`: every how many batches one wait is long, 0 if there is no such rhythm; `long` bool[k]: which of the waits
    are.
    """

    waits: BatchWaits
    share: float
    in_process: bool
    steps_waiting: int
    always: bool
    repeated: bool
    period: int
    long: Mask


def batch_stalls(facts: Facts) -> BatchStalls:
    """How the waits for batches hold up the steady steps, but for those that started workers anew."""
    found, times, starts = facts.get(batch_waits), facts.get(steady), facts.get(epoch_starts)
    found = found.part(~np.isin(found.row, starts.first[starts.restarted]))
    found = replace(found, exposed_ns=np.where(facts.trace.dur_ns[found.row] >= LATE_NS, found.exposed_ns, 0))
    per_step = np.bincount(found.step, found.exposed_ns, minlength=len(times))
    waiting = per_step >= WORTH * times.step_ns
    exposed = found.exposed_ns > 0
    period, long = _rhythm(found, times.step_ns)
    number = int(np.count_nonzero(waiting))
    always = number >= MOSTLY * len(times)
    several = np.count_nonzero(exposed) >= SEVERAL if times.whole else always
    return BatchStalls(
        waits=found.part(exposed),
        share=float(found.exposed_ns.sum()) / times.total_ns,
        in_process=bool(len(found)) and float(np.mean(found.in_process)) > 0.5,
        steps_waiting=number,
        always=always,
        repeated=bool(several) or number > 1,
        period=period,
        long=long[exposed],
    )


def _rhythm(found: BatchWaits, step_ns: float) -> tuple[int, Mask]:
    """Every how many batches one wait is long (0 for no rhythm), and which waits are long."""
    usual = float(np.median(found.exposed_ns)) if len(found) else 0.0
    long = found.exposed_ns >= max(LONG * step_ns, LONGER * usual)
    place = np.flatnonzero(long)
    apart = np.diff(place)
    if len(place) < PERIODS or apart.min() < 2 or apart.max() != apart.min():
        return 0, long
    return int(apart[0]), long
