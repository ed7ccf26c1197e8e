"""Why the host waits for the device: the one reason of every wait, which one rule accuses."""

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.blocking import Blocking, blocking
from torchdiag.timeline.facts.copies import TO_DEVICE, TO_HOST, Copies, copies
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.nesting import named, nesting, operators
from torchdiag.timeline.facts.operator_order import operator_order
from torchdiag.timeline.facts.round_trips import round_trips
from torchdiag.timeline.facts.wait_surroundings import WaitSurroundings, wait_surroundings
from torchdiag.trace.vocabulary import Call, Kind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

LARGE_BYTES = 1 << 20
"""A copy to the host of that size is slow by itself: the rules of transfers accuse it."""
SCALAR_BYTES = 16
"""No number is larger."""
MANY_CHECKS = 3
"""So many finite checks in a step look at parts of a model one by one."""

PROFILER_FRAME = re.compile(
    r"torch[/\\](profiler[/\\]profiler\.py\(\d+\): (?!__call__|wrapper)"
    r"|autograd[/\\]profiler\.py\(\d+\): (_prepare_trace|_start_trace)$)"
)
SYNCHRONIZE_FRAME = re.compile(r"torch[/\\](cuda|xpu|mtia|hpu)[/\\]__init__\.py\(\d+\): synchronize$")
SCALER_FRAME = re.compile(r"torch[/\\](cuda[/\\])?amp[/\\]grad_scaler\.py\(\d+\): ")
LENGTHS_FRAME = re.compile(r"torch[/\\]nn[/\\]utils[/\\]rnn\.py\(\d+\): pack_(padded_)?sequence$")
PRINT_FRAME = re.compile(
    r"torch[/\\](_tensor_str\.py\(\d+\): |_tensor\.py\(\d+\): (__repr__|__str__|__format__)$)"
    r"|^<built-in method tolist of (Tensor|Parameter)"
)
CLIP_FRAME = re.compile(r"torch[/\\]nn[/\\]utils[/\\]clip_grad\.py\(\d+\): ")
TRUTH_FRAME = re.compile(r"torch[/\\]distributions[/\\]")

DEVICE_WIDE = re.compile(r"(Device|Ctx)Synchronize")
ENGINE = "autograd::engine::evaluate_function"
INDEXING = ("aten::index", "aten::index_put_", "aten::index_put", "aten::_index_put_impl_", "aten::masked_scatter")
SHAPES = (
    *("aten::nonzero", "aten::nonzero_numpy", "aten::argwhere", "aten::_unique", "aten::_unique2"),
    *("aten::unique_dim", "aten::unique_consecutive", "aten::unique_dim_consecutive", "aten::repeat_interleave"),
    *("aten::one_hot", "aten::bincount", "aten::tensor_split"),
)
TRUTHS = (
    *("aten::is_nonzero", "aten::equal", "aten::allclose", "aten::multinomial", "aten::_linalg_check_errors"),
    *("aten::_assert_async", "aten::is_set_to"),
)
READS = ("aten::item", "aten::_local_scalar_dense")
CTC = ("aten::ctc_loss", "aten::_ctc_loss", "aten::_cudnn_ctc_loss")


class Reason(IntEnum):
    """Why the host waits; of those that fit, the first one counts.

    OTHER, LAST (nothing was issued after it), TO_DEVICE (a copy that brings something), ANOMALY and LARGE (at least
    LARGE_BYTES to the host) are nobody's here: other rules judge them, or none should. SCALAR is a number that is read,
    FETCHED a whole tensor that stays on the host.
    """

    OTHER = 0
    LAST = 1
    DEVICE = 2
    TO_DEVICE = 3
    ANOMALY = 4
    SCALER = 5
    LENGTHS = 6
    PRINT = 7
    MASK = 8
    SHAPE = 9
    CLIP = 10
    FINITE = 11
    INDEX = 12
    TRUTH = 13
    ROUND_TRIP = 14
    LARGE = 15
    SCALAR = 16
    FETCHED = 17


@dataclass(frozen=True, eq=False)
class WaitReasons:
    """The waits of the steady steps with the one reason of each.

    `reason` uint8[k] of `Reason`. `top` int64[k]: the outermost `aten::` operator around each, -1 without one.
    """

    waits: Blocking
    reason: NDArray[np.uint8]
    top: Rows

    def __len__(self) -> int:
        return len(self.waits)

    def part(self, chosen: Mask | Rows) -> "WaitReasons":
        """Some of the waits."""
        return WaitReasons(self.waits.part(chosen), self.reason[chosen], self.top[chosen])

    def of(self, reason: Reason) -> "WaitReasons":
        """The waits of one reason."""
        return self.part(self.reason == reason)


def wait_reasons(facts: Facts) -> WaitReasons:
    """The reason of every wait of the steady steps."""
    waits = facts.get(blocking)
    reason = np.zeros(len(waits), np.uint8)
    top = facts.get(operator_order).around(waits.row)
    answer = WaitReasons(waits, reason, top)
    if not len(waits):
        return answer
    table, around = facts.get(copies), facts.get(wait_surroundings)
    direction = _of_copy(waits, table, "direction", 0)
    size = _of_copy(waits, table, "size_bytes", -1)
    reading = _below(facts, waits, *READS)
    claims: list[tuple[Reason, Mask]] = [
        (Reason.LAST, _framed(facts, waits, PROFILER_FRAME) | (_at_the_edge(facts, waits) & (top < 0))),
        (Reason.DEVICE, _device_wide(facts, waits)),
        (Reason.TO_DEVICE, direction == TO_DEVICE),
        (Reason.ANOMALY, _anomaly(facts, answer, around)),
        (Reason.SCALER, _framed(facts, waits, SCALER_FRAME) | around.reads_scale(top)),
        (Reason.LENGTHS, _framed(facts, waits, LENGTHS_FRAME) | _below(facts, waits, *CTC) | around.lengths(top)),
        (Reason.PRINT, _framed(facts, waits, PRINT_FRAME)),
        (Reason.MASK, _mask(facts, waits)),
        (Reason.SHAPE, _below(facts, waits, *SHAPES)),
        (Reason.CLIP, _framed(facts, waits, CLIP_FRAME) | around.clips(top)),
        (Reason.FINITE, _finite(facts, answer, around)),
        (Reason.INDEX, around.indexes(top, waits.step, size) & reading),
        (Reason.TRUTH, _below(facts, waits, *TRUTHS) | _framed(facts, waits, TRUTH_FRAME)),
        (Reason.LARGE, (direction == TO_HOST) & (size >= LARGE_BYTES)),
    ]
    for code, mask in claims:
        reason[(reason == Reason.OTHER) & mask] = code
    free = (reason == Reason.OTHER) | (reason == Reason.LARGE)
    trip = facts.get(round_trips).starts(waits.with_copy) & ~reading
    reason[free & trip] = Reason.ROUND_TRIP
    number = reading | ((direction == TO_HOST) & (size >= 0) & (size <= SCALAR_BYTES))
    reason[(reason == Reason.OTHER) & number] = Reason.SCALAR
    reason[(reason == Reason.OTHER) & (direction == TO_HOST)] = Reason.FETCHED
    return answer


def _of_copy(waits: Blocking, table: Copies, name: str, missing: int) -> NDArray[np.int64]:
    """int64[k]: a column of the copy that each wait is for."""
    value = np.full(len(waits), missing, np.int64)
    copied = waits.copy >= 0
    value[copied] = getattr(table, name)[waits.copy[copied]]
    return value


def _below(facts: Facts, waits: Blocking, *names: str) -> Mask:
    return waits.inside(facts, operators(facts.trace, *names))


def _framed(facts: Facts, waits: Blocking, pattern: re.Pattern[str]) -> Mask:
    around = FramesAround.named(facts, lambda name: pattern.search(name) is not None, Kind.PYTHON)
    return around.around(waits.row)


def _at_the_edge(facts: Facts, waits: Blocking) -> Mask:
    """bool[k]: bare synchronisations before the first or after the last call that issues anything in the trace."""
    trace = facts.trace
    issued = trace.ts_ns[np.isin(trace.call, (Call.LAUNCH, Call.COPY))]
    if not len(issued):
        return waits.copy < 0
    start = trace.ts_ns[waits.row]
    return (waits.copy < 0) & ((start > issued.max()) | (start < issued.min()))


def _device_wide(facts: Facts, waits: Blocking) -> Mask:
    """bool[k]: synchronisations of the whole device that no operator makes by itself."""
    trace = facts.trace
    calls = named(trace, Kind.RUNTIME, lambda name: DEVICE_WIDE.search(name) is not None)
    real = named(trace, Kind.OPERATOR, lambda name: "::" in name and not name.startswith(ENGINE))
    inner = waits.inside(facts, real) & ~_framed(facts, waits, SYNCHRONIZE_FRAME)
    return np.isin(waits.row, calls) & ~inner


def _anomaly(facts: Facts, found: WaitReasons, around: WaitSurroundings) -> Mask:
    """bool[k]: the check that anomaly mode makes after each node of the backward pass."""
    tree = facts.get(nesting)
    parent = np.where(found.top >= 0, tree.parent[np.maximum(found.top, 0)], -1)
    engine = np.isin(parent, named(facts.trace, Kind.OPERATOR, lambda name: name.startswith(ENGINE)))
    told = around.before(found.top, 1, "aten::_is_any_true")
    older = around.before(found.top, 1, "aten::any") & around.before(found.top, 2, "aten::isnan")
    return around.named(found.top, *READS) & engine & (told | older)


def _mask(facts: Facts, waits: Blocking) -> Mask:
    """bool[k]: waits for the size of what a boolean mask selects."""
    indexing = _below(facts, waits, *INDEXING) & _below(facts, waits, "aten::nonzero")
    return indexing | _below(facts, waits, "aten::masked_select", "aten::masked_select_backward")


def _finite(facts: Facts, found: WaitReasons, around: WaitSurroundings) -> Mask:
    """bool[k]: finite checks, if there are many in a step, or if they sit in the backward pass."""
    checks = around.checks_finite(found.top)
    waits = found.waits
    often = np.bincount(waits.step[checks], minlength=int(waits.step.max()) + 1)[waits.step]
    engine = named(facts.trace, Kind.OPERATOR, lambda name: name.startswith(ENGINE))
    return checks & ((often >= MANY_CHECKS) | waits.inside(facts, engine))
