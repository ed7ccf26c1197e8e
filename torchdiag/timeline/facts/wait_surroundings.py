"""What a program called just before and just after it read something from the device."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.inputs import Inputs, inputs
from torchdiag.timeline.facts.nesting import named, operators
from torchdiag.timeline.facts.operator_order import OperatorOrder, operator_order
from torchdiag.timeline.facts.steady import Steady, steady
from torchdiag.trace import classify
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

ITEM_FRAME = re.compile(r"^<built-in method item of ")
UNSCALE, UPDATE = "aten::_amp_foreach_non_finite_check_and_unscale_", "aten::_amp_update_scale_"
NORMS = ("aten::linalg_vector_norm", "aten::_foreach_norm", "aten::norm", "aten::frobenius_norm", "aten::linalg_norm")
FINITE = ("aten::isfinite", "aten::isnan", "aten::isinf")
BRANCH = "aten::is_nonzero"
READS = ("aten::item", "aten::_local_scalar_dense")
WHOLE = ("aten::to", "aten::_to_copy", "aten::copy_", "aten::cpu")
SLICES = ("aten::select", "aten::slice", "aten::narrow")
LENGTHS = ("aten::_pack_padded_sequence", "aten::ctc_loss", "aten::_ctc_loss", "aten::_cudnn_ctc_loss")
LARGEST = ("aten::max", "aten::amax")
INTEGERS = frozenset({"long int", "long", "int", "short int", "short", "unsigned char", "signed char"})

BRANCH_REACH = 9
"""Between a norm and the last of the three branches that the clipping of old versions made lie so many operators."""
FINITE_REACH = 3
LENGTHS_REACH = 10
VARLEN_REACH = 40
NEAR_NS = 50_000
"""A conversion and the indexing that needs it follow one another in C++; Python takes its time."""
INTEGER_BYTES = 8


@dataclass(frozen=True, eq=False)
class WaitSurroundings:
    """Answers about the outermost operators (`tops`, int64[k] rows, -1 for none) that waits happen in."""

    trace: Trace
    order: OperatorOrder
    times: Steady
    decoded: Inputs
    optimizer_ns: dict[int, NDArray[np.int64]]
    """Starts of the optimizers' steps on each track, ascending."""
    backward_ns: NDArray[np.int64]
    """Starts of the nodes of backward passes on any thread, ascending."""
    explicit: FramesAround
    """The `item` calls that a person wrote."""

    def named(self, rows: Rows, *names: str) -> Mask:
        """bool[k]: rows with one of the names."""
        found = np.zeros(len(rows), np.bool_)
        known = np.flatnonzero(rows >= 0)
        found[known] = classify.by_name(self.trace, rows[known], frozenset(names).__contains__) != 0
        return found

    def before(self, tops: Rows, distance: int, *names: str) -> Mask:
        """bool[k]: whether what was called `distance` operators before has one of the names."""
        return self.named(self.order.neighbour(tops, -distance), *names)

    def within(self, tops: Rows, distances: range, *names: str) -> Mask:
        """bool[k]: whether what was called one of the distances after (before, if negative) has one of the names."""
        found = np.zeros(len(tops), np.bool_)
        for distance in distances:
            found |= self.named(self.order.neighbour(tops, distance), *names)
        return found

    def reads_scale(self, tops: Rows) -> Mask:
        """bool[k]: reads of a gradient scaler: after it checked the gradients, just before the optimizer steps."""
        reads = self.named(tops, *READS)
        found = np.zeros(len(tops), np.bool_)
        for track, mine in self._by_track(tops, reads):
            start = self.trace.ts_ns[tops[mine]]
            unscaled = self._starts(track, UNSCALE)
            updated = self._starts(track, UPDATE)
            checked, then = _last(unscaled, start), _next(updated, start)
            open_ = (checked > _last(updated, start)) & (then < np.iinfo(np.int64).max)
            step_ns = _next(self.optimizer_ns.get(track, unscaled[:0]), start)
            following = self.order.neighbour(tops[mine], 1)
            ends = np.where(following >= 0, self.trace.ts_ns[np.maximum(following, 0)], np.iinfo(np.int64).max)
            found[mine] = open_ & (self.before(tops[mine], 1, UNSCALE) | (step_ns <= ends))
        return found

    def lengths(self, tops: Rows) -> Mask:
        """bool[k]: reads of lengths for operators of the same step that need them on the host."""
        packs = np.zeros(len(tops), np.bool_)
        for distance in range(1, LENGTHS_REACH + 1):
            following = self.order.neighbour(tops, distance)
            packs |= self.named(following, *LENGTHS) & (self._step(following) == self._step(tops))
        packs &= self.named(tops, *WHOLE)
        longest = self.named(tops, *READS) & self.before(tops, 1, *LARGEST)
        return packs | (longest & self._varlen(tops))

    def clips(self, tops: Rows) -> Mask:
        """bool[k]: decisions on the norm of the gradients between the backward pass and the optimizer's step."""
        branch = self.named(tops, BRANCH) & self.within(tops, range(-BRANCH_REACH, 0), *NORMS)
        norm = self.named(tops, *READS) & self.before(tops, 1, *NORMS)
        after = self._after_backward(tops)
        step = self._step(tops)
        norm &= after & (step >= 0)
        often = np.bincount(step[norm], minlength=len(self.times) + 1)
        return (branch & after) | (norm & (often[step] > 1))

    def checks_finite(self, tops: Rows) -> Mask:
        """bool[k]: whether what was read tells of infinities or NaNs."""
        return self.named(tops, BRANCH, *READS) & self.within(tops, range(-FINITE_REACH, 0), *FINITE)

    def indexes(self, tops: Rows, step: NDArray[np.int64], size_bytes: NDArray[np.int64]) -> Mask:
        """bool[k]: integers read for the selection or the slice that follows at once, or inside of it.

        `size_bytes` is what was copied for each, -1 where not known.
        """
        following, at_once = tops, np.zeros(len(tops), np.bool_)
        last = tops
        for _ in range(3):  # a slice may have a start, a stop and a step
            following = self.order.neighbour(following, 1)
            start = self.trace.ts_ns[np.maximum(following, 0)]
            end = self.trace.ts_ns[np.maximum(last, 0)] + self.trace.dur_ns[np.maximum(last, 0)]
            near = (following >= 0) & (start - end < NEAR_NS) & (self._step(following) == step)
            at_once |= near & self.named(following, *SLICES)
            last = np.where(near & self.named(following, *READS), following, -1)
            following = last
        likely = np.flatnonzero(at_once & self.named(tops, *READS))
        likely = likely[~self.explicit.around(tops[likely])]
        found = self.named(tops, *SLICES)
        found[likely] = [self._integer(top, size) for top, size in zip(tops[likely], size_bytes[likely], strict=True)]
        return found

    def _step(self, rows: Rows) -> NDArray[np.int64]:
        """int64[k]: the steady step that each of the rows begins in, -1 for none and for -1."""
        return np.where(rows >= 0, self.times.of(self.trace.ts_ns[np.maximum(rows, 0)]), -1)

    def _integer(self, top: int, size_bytes: int) -> bool:
        types = self.decoded.types(int(top)) if top >= 0 else ()
        return types[0] in INTEGERS if types else size_bytes == INTEGER_BYTES

    def _after_backward(self, tops: Rows) -> Mask:
        """bool[k]: after the last node of a backward pass and before the optimizer's step, all in one step."""
        found = np.zeros(len(tops), np.bool_)
        for track, mine in self._by_track(tops, tops >= 0):
            start = self.trace.ts_ns[tops[mine]]
            step_ns = _next(self.optimizer_ns.get(track, start[:0]), start)
            engine_ns = _last(self.backward_ns, start)
            step = self.times.of(start)
            same = (step >= 0) & (self.times.of(step_ns) == step) & (self.times.of(engine_ns) == step)
            found[mine] = same & (_next(self.backward_ns, start) > step_ns)
        return found

    def _varlen(self, tops: Rows) -> Mask:
        """bool[k]: whether attention over sequences of varying lengths is among the next operators."""
        found = np.zeros(len(tops), np.bool_)
        kernels = named(self.trace, Kind.OPERATOR, lambda name: "varlen" in name.lower())
        for track, mine in self._by_track(tops, tops >= 0):
            far = self.order.neighbour(tops[mine], VARLEN_REACH)
            until = np.where(far >= 0, self.trace.ts_ns[np.maximum(far, 0)], np.iinfo(np.int64).max)
            starts = np.sort(self.trace.ts_ns[kernels[self.trace.track[kernels] == track]])
            following = _next(starts, self.trace.ts_ns[tops[mine]])
            found[mine] = (following < until) & (self.times.of(following) == self._step(tops[mine]))
        return found

    def _by_track(self, tops: Rows, chosen: Mask) -> list[tuple[int, Rows]]:
        wanted = np.flatnonzero(chosen)
        track = self.trace.track[tops[wanted]]
        return [(int(number), wanted[track == number]) for number in np.flatnonzero(np.bincount(track, minlength=1))]

    def _starts(self, track: int, name: str) -> NDArray[np.int64]:
        rows = operators(self.trace, name)
        return np.sort(self.trace.ts_ns[rows[self.trace.track[rows] == track]])


def wait_surroundings(facts: Facts) -> WaitSurroundings:
    """What a program called around its waits."""
    trace = facts.trace
    steps = named(trace, Kind.ANNOTATION, lambda name: name.startswith("Optimizer.step#"))
    tracks = np.flatnonzero(np.bincount(trace.track[steps], minlength=1)).tolist()
    engine = named(trace, Kind.OPERATOR, lambda name: name.startswith("autograd::engine::evaluate_function"))
    return WaitSurroundings(
        trace,
        facts.get(operator_order),
        facts.get(steady),
        facts.get(inputs),
        {track: np.sort(trace.ts_ns[steps[trace.track[steps] == track]]) for track in tracks},
        np.sort(trace.ts_ns[engine]),
        FramesAround.named(facts, lambda name: ITEM_FRAME.search(name) is not None, Kind.PYTHON),
    )


def _last(sorted_ns: NDArray[np.int64], instant: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[k]: the last of the times before each instant, the least int64 where there is none."""
    padded = np.append(sorted_ns, np.iinfo(np.int64).min)
    return padded[np.searchsorted(sorted_ns, instant, side="left") - 1]


def _next(sorted_ns: NDArray[np.int64], instant: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[k]: the first of the times after each instant, the greatest int64 where there is none."""
    padded = np.append(sorted_ns, np.iinfo(np.int64).max)
    return padded[np.searchsorted(sorted_ns, instant, side="right")]
