"""Which copies to the device bring the next batch, and which come in the middle of the computation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.copies import TO_DEVICE, Copies, copies
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.steady import MOSTLY, steady
from torchdiag.timeline.facts.whereabouts import Where, whereabouts
from torchdiag.timeline.loader import loader_events

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class BatchCopies:
    """Where the copies to the device of the steady steps are called, and whether they bring a batch.

    `copies`: those with a known call. `place` int64[k]: index into `places`. `batch` bool[k]: in most steps the place
    (the copy itself where no line is known) copies before anything was computed from the loader's last batch.
    `consumed` bool[k]: it runs on a stream that computes, and something is launched to compute later in the step; a
    batch fetched ahead is copied on a stream of its own, or at the end of a step. `loader`: whether the trace shows the
    loader.
    """

    copies: Copies
    place: NDArray[np.int64]
    places: tuple[Where, ...]
    batch: Mask
    consumed: Mask
    loader: bool


def batch_copies(facts: Facts) -> BatchCopies:
    """The copies to the device of the steady steps, told apart by what they bring."""
    table = facts.get(copies)
    table = table.part((table.direction == TO_DEVICE) & (table.step >= 0) & (table.call >= 0))
    number: dict[Where, int] = {}
    place = [number.setdefault(where, len(number)) for where in facts.get(whereabouts).of(table.call)]
    places, loaders = tuple(number), loader_events(facts.trace)
    early = _before_computing(facts, table, facts.trace.ts_ns[loaders] + facts.trace.dur_ns[loaders])
    answer = BatchCopies(
        table, np.array(place, np.int64), places, early.copy(), _consumed(facts, table), bool(len(loaders))
    )
    steps = len(facts.get(steady))
    for index, where in enumerate(places):
        here = answer.place == index
        seen = len(set(table.step[here & early].tolist()))
        if where.file is not None:
            answer.batch[here] = seen >= MOSTLY * len(set(table.step[here].tolist())) and seen >= min(steps, 1)
    return answer


def _before_computing(facts: Facts, table: Copies, fetched_ns: NDArray[np.int64]) -> Mask:
    """bool[k]: whether nothing was launched to compute since the step began or the loader gave its last batch."""
    called = facts.trace.ts_ns[table.call]
    computing = facts.get(kernels).compute().call
    launched = np.sort(facts.trace.ts_ns[computing[computing >= 0]])
    began = np.maximum(facts.get(steady).start_ns[table.step], _latest(np.sort(fetched_ns), called))
    return _latest(launched, called) < began


def _consumed(facts: Facts, table: Copies) -> Mask:
    """bool[k]: copies on a stream that computes, with something launched to compute later in the same step."""
    computing, activities = facts.get(kernels).compute(), facts.partition.activities
    lanes = set(zip(computing.device.tolist(), computing.stream.tolist(), strict=True))
    device, stream = activities.device[table.activity].tolist(), activities.stream[table.activity].tolist()
    same = np.array([lane in lanes for lane in zip(device, stream, strict=True)], np.bool_)
    called = facts.trace.ts_ns[table.call]
    last = np.full(len(facts.get(steady)), np.iinfo(np.int64).min)
    known = computing.call >= 0
    np.maximum.at(last, computing.step[known], facts.trace.ts_ns[computing.call[known]])
    return same & (last[table.step] > called)


def _latest(sorted_ns: NDArray[np.int64], instant: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[k]: the last of the times not after each instant, the least int64 where there is none."""
    place = np.searchsorted(sorted_ns, instant, side="right") - 1
    padded = np.append(sorted_ns, np.iinfo(np.int64).min)
    return padded[np.where(place >= 0, place, len(sorted_ns))]
