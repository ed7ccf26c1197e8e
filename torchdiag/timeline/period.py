"""Steps of a trace without step marks: the period of its kernel sequence.

A period is looked for with anchors: a kernel, or a short run of kernels, that occurs once in every repetition cuts the
sequence into pieces, and the pieces are repetitions when they hold the same kernels in much the same order. Kernels
are taken in the order of their launches, which concurrency on the device does not stir. Comparing what the pieces
hold lets a repetition have a few kernels more or less, and whatever came before the first of them.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.activity import Activities
from torchdiag.timeline.distinct import numbered
from torchdiag.trace import classify
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

MATCH = 0.9
"""Share of kernels two repetitions must have in common."""

REPETITIONS = 3
"""Fewest repetitions that make a period."""

MOST_REPETITIONS = 500
"""What repeats more often than this is a loop within something, no step."""

COVERED = 0.6
"""Least share of all kernels that must lie in repetitions."""

MUCH_BETTER = 0.02
"""How many more of the kernels a shorter period must explain to be preferred to a longer one."""

WIDTHS = (1, 4, 16)
"""Lengths of the runs of kernels that are tried as anchors."""

ORDER_WIDTH = 8
ORDERED_PIECES = 16
IN_ORDER = 0.5
"""Share of the runs of ORDER_WIDTH kernels that most repetitions must have in common."""

MIXER = np.uint64(0x9E3779B97F4A7C15)
SAMPLED_PIECES = 64
ANCHORS = 12
"""How many kernels are tried as anchors; bounds the time on large traces."""


def periods(trace: Trace, activities: Activities) -> list[tuple[int, int]]:
    """(start_ns, end_ns) of each repetition, in the trace's clock and in time order; empty where nothing repeats.

    A repetition begins with the launch of its first kernel and ends where the next one begins; the last one ends with
    the launch call of its last kernel. Kernels whose launch is not recorded count at their own time. Where optimizer
    steps are annotated, a repetition ends with each of them. Of several periods that fit, the one with the fewest
    repetitions that explains the most kernels is taken, so that a step wins over the layers in it.
    """
    begin, end, names = _kernels(trace, activities)
    by_optimizer = _optimizer_steps(trace, begin)
    if by_optimizer:
        return by_optimizer
    cuts = _best_cuts(names)
    if not len(cuts):
        return []
    starts = begin[cuts[:-1]]
    last = cuts[-1] - 1
    ends = np.append(starts[1:], max(int(end[last]), int(starts[-1]) + 1))
    # What repeats within one graph launch has one time on the host, and is no step.
    spans = [span for span in zip(starts.tolist(), ends.tolist(), strict=True) if span[0] < span[1]]
    return spans if len(spans) >= max(REPETITIONS, 0.9 * len(starts)) else []


def _kernels(trace: Trace, activities: Activities) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Launch start, launch end and name code of the kernels of the busiest device, in launch order."""
    kernels = np.flatnonzero(trace.kind[activities.row] == Kind.KERNEL)
    if not len(kernels):
        none = np.zeros(0, np.int64)
        return none, none, none
    devices, of = numbered(activities.device[kernels])
    kernels = kernels[of == np.bincount(of, minlength=len(devices)).argmax()]
    launch, own = activities.launch[kernels], activities.start_ns[kernels]
    begin = np.where(launch >= 0, trace.ts_ns[launch], own)
    end = np.where(launch >= 0, trace.ts_ns[launch] + trace.dur_ns[launch], activities.end_ns[kernels])
    order = np.lexsort((activities.row[kernels], own, begin))
    _, names = numbered(trace.name[activities.row[kernels]])
    return begin[order], end[order], names[order]


def _optimizer_steps(trace: Trace, begin: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Spans that end with the optimizer steps of the commonest optimizer, when there are enough of them."""
    rows = np.flatnonzero(trace.kind == Kind.ANNOTATION)
    rows = rows[classify.by_name(trace, rows, lambda name: name.startswith("Optimizer.step#")) != 0]
    if len(rows) < REPETITIONS:
        return []
    rows = rows[trace.name[rows] == np.bincount(trace.name[rows]).argmax()]
    rows = rows[trace.track[rows] == np.bincount(trace.track[rows]).argmax()]
    ends = np.sort(trace.ts_ns[rows] + trace.dur_ns[rows])
    first = int(begin[0]) if len(begin) and begin[0] < ends[0] else int(trace.ts_ns[rows].min())
    bounds = [first, *ends.tolist()]
    return list(pairwise(bounds)) if len(rows) >= REPETITIONS else []


def _best_cuts(names: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions in the kernel sequence where repetitions begin, and where the last one ends; empty without a period.

    Kernels that occur once in a repetition are tried first, then short runs of kernels that do.
    """
    for width in WIDTHS:
        cuts = _cuts_at(names, _runs(names, width))
        if len(cuts):
            return cuts
    return np.zeros(0, np.int64)


def _cuts_at(names: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """As `_best_cuts`, with anchors among the codes, one a position."""
    best, best_score = np.zeros(0, np.int64), COVERED - MUCH_BETTER
    for positions in _anchors(codes):
        cuts = np.append(positions, len(names))
        alike = _alike(names, cuts)
        # The piece behind the last anchor may be cut off by the end of the trace.
        if not alike[-1]:
            cuts, alike = cuts[:-1], alike[:-1]
        score = float(np.diff(cuts)[alike].sum()) / len(names)
        if alike.sum() >= REPETITIONS and score >= best_score + MUCH_BETTER and _in_order(names, cuts):
            best, best_score = cuts, score
        if best_score > 1 - MUCH_BETTER:
            break
    return best


def _runs(names: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """A code for the `width` kernels from each position on (fewer positions than kernels)."""
    if width == 1:
        return names
    length = max(len(names) - width + 1, 0)
    mixed = np.zeros(length, np.uint64)
    for offset in range(width):
        mixed = mixed * MIXER + names[offset : offset + length].astype(np.uint64)
    return numbered(mixed.view(np.int64))[1]


def _anchors(names: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Positions of each kernel name that recurs at regular distances: rarest names first, then the earliest."""
    order = np.argsort(names, kind="stable")
    counts = np.bincount(names) if len(names) else np.zeros(0, np.int64)
    ends = np.cumsum(counts)
    rare = np.flatnonzero((counts >= REPETITIONS) & (counts <= MOST_REPETITIONS))
    first = order[ends[rare] - counts[rare]]
    tried: dict[int, int] = {}
    for name in rare[np.lexsort((first, counts[rare]))].tolist():
        positions = order[ends[name] - counts[name] : ends[name]]
        distance = np.diff(positions)
        usual = float(np.quantile(distance, 0.5))
        regular = np.abs(distance - usual) <= 0.1 * usual
        count = len(positions)
        if usual < 2 or regular.mean() < 0.5 or tried.get(count, 0) >= 3:
            continue
        tried[count] = tried.get(count, 0) + 1
        yield positions
        if sum(tried.values()) >= ANCHORS:
            return


def _alike(names: NDArray[np.int64], cuts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the pieces between cuts hold the usual kernels, and as many of each."""
    pieces, kinds = len(cuts) - 1, int(names.max()) + 1
    sizes = np.diff(cuts)
    piece = np.repeat(np.arange(pieces), sizes)
    held = np.bincount(piece * kinds + names[cuts[0] : cuts[-1]], minlength=pieces * kinds).reshape(pieces, kinds)
    usual = np.quantile(held[:: pieces // SAMPLED_PIECES + 1], 0.5, axis=0)
    common = np.minimum(held, usual).sum(axis=1)
    whole = np.maximum(sizes, usual.sum())
    several = (held > 0).sum(axis=1) > 1
    return several & (common >= MATCH * whole)


def _in_order(names: NDArray[np.int64], cuts: NDArray[np.int64]) -> bool:
    """Whether most short runs of kernels are found in most of the pieces: long pieces of chance hold the same, too."""
    middle = len(cuts) // 2
    cuts = cuts[max(middle - ORDERED_PIECES // 2, 0) : middle + ORDERED_PIECES // 2 + 1]
    runs = _runs(names[cuts[0] : cuts[-1]], ORDER_WIDTH)
    pieces = len(cuts) - 1
    piece = np.repeat(np.arange(pieces), np.diff(cuts))[: len(runs)]
    held = np.sort(runs * pieces + piece)
    of_run = held[np.diff(held, prepend=-1) > 0] // pieces
    common = 2 * np.bincount(of_run) >= pieces
    return len(runs) == 0 or float(common[runs].mean()) >= IN_ORDER
