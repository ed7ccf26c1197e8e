"""What is missing or doubtful about the host side of a trace, and about its events as a whole."""

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.result import Step
from torchdiag.trace.columns import MISSING, Trace
from torchdiag.trace.quality import Quality
from torchdiag.trace.vocabulary import Kind

OVERHEAD_SHARE = 0.01
"""Profiler overhead below this share of the time is not worth a line."""

MANY_FRAMES = 1000
SAMPLE = 1 << 17
FAR = 10
"""Events further from the middle nine tenths of a trace than this many times their extent are outliers."""

FEWEST = 20
"""Fewer events than this have no extent to speak of."""

MIXERS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)


def no_stacks(trace: Trace) -> Quality | None:
    """Whether host events come without any Python stack."""
    kind = trace.kind
    if np.any(kind == Kind.PYTHON) or len(trace.args.call_stack) or not np.any(kind == Kind.OPERATOR):
        return None
    return Quality(
        "no-stacks",
        "The trace has no Python stacks, so causes are told by operator and annotation; profile with with_stack=True "
        "to see source lines.",
    )


def no_shapes(trace: Trace) -> Quality | None:
    """Whether operators come without the shapes of their inputs."""
    if len(trace.args.input_dims) or not np.any(trace.kind == Kind.OPERATOR):
        return None
    return Quality("no-shapes", "The trace has no input shapes; profile with record_shapes=True to see them.")


def stack_inflation(trace: Trace) -> Quality | None:
    """Whether recording Python frames slowed the host that is measured."""
    frames = int(np.count_nonzero(trace.kind == Kind.PYTHON))
    if frames < MANY_FRAMES:
        return None
    return Quality(
        "stacks-slow-the-host",
        f"{frames:,} Python frames were recorded, which slows the host down: without with_stack its share of the idle "
        "time is smaller.",
        frames,
    )


def profiler_overhead(trace: Trace, steps: tuple[Step, ...]) -> Quality | None:
    """The share of the steps (of all host time, without steps) that the profiler's own work takes."""
    rows = np.flatnonzero(trace.kind == Kind.OVERHEAD)
    if not len(rows):
        return None
    low, high = _extent(trace, steps)
    start = np.clip(trace.ts_ns[rows], low, high)
    end = np.clip(trace.ts_ns[rows] + trace.dur_ns[rows], low, high)
    order = np.argsort(start, kind="stable")
    busy = intervals.length(*intervals.union(start[order], end[order]))
    if busy == 0 or busy < OVERHEAD_SHARE * (high - low):  # overhead of no length may be all there is
        return None
    return Quality(
        "profiler-overhead",
        f"The profiler's own work covers {busy / 1e6:.1f} ms, {busy / (high - low):.1%} of the time.",
        len(rows),
    )


def partial_steps(steps: tuple[Step, ...]) -> Quality | None:
    """First or last steps that the trace holds only a part of."""
    partial = [step.name for step in steps if step.note.split(", ")[0] == "partial"]
    if not partial:
        return None
    usable = len(steps) - len(partial)
    return Quality(
        "partial-steps",
        f"{' and '.join(partial)} {'is' if len(partial) == 1 else 'are'} recorded only in part; {usable:,} of "
        f"{len(steps):,} steps are whole.",
        len(partial),
    )


def several_ranks(trace: Trace) -> Quality | None:
    """Whether operators of more than one process are in the file."""
    if any(note.code == "several-ranks" for note in trace.quality):
        return None
    tracks = np.flatnonzero(np.bincount(trace.track[trace.kind == Kind.OPERATOR], minlength=len(trace.tracks)))
    processes = sorted({str(trace.tracks.pids[track]) for track in tracks.tolist()})
    if len(processes) < 2:
        return None
    return Quality(
        "several-ranks",
        f"Operators of {len(processes)} processes are in one file ({', '.join(processes[:4])}"
        f"{', ...' if len(processes) > 4 else ''}); devices with one number are taken for one.",
        len(processes),
    )


def duplicates(trace: Trace) -> Quality | None:
    """Complete events that repeat another one exactly: name, thread, time and identifiers.

    A trace with very many events is searched by a sample first (of instants, so that pairs stay together); only if the
    sample holds a duplicate are all counted.
    """
    timed = trace.kind != Kind.OTHER
    bits = min((len(trace) // SAMPLE).bit_length(), 22)
    low = trace.ts_ns.astype(np.uint32)
    low &= np.uint32(((1 << bits) - 1) << 10)
    sampled = low == 0
    if bits and not _repeated(trace, np.flatnonzero(timed & sampled)):
        return None
    count = _repeated(trace, np.flatnonzero(timed))
    if not count:
        return None
    return Quality("duplicate-events", f"{count:,} events repeat another event exactly.", count)


def clock_outliers(trace: Trace) -> Quality | None:
    """Complete events whose time lies far outside of the trace's."""
    timed = trace.kind != Kind.OTHER
    every = len(timed) // SAMPLE + 1
    sample = trace.ts_ns[::every][timed[::every]]
    if len(sample) < FEWEST:
        return None
    low, high = np.quantile(sample, [0.05, 0.95], method="nearest").tolist()
    reach = FAR * max(high - low, 1)
    count = int(np.count_nonzero(timed & ((trace.ts_ns < low - reach) | (trace.ts_ns > high + reach))))
    if not count:
        return None
    return Quality(
        "clock-outliers",
        f"{count:,} events lie more than {FAR} times the trace's length away from it; their clock cannot be right.",
        count,
    )


def _extent(trace: Trace, steps: tuple[Step, ...]) -> tuple[int, int]:
    if steps:
        return min(step.start_ns for step in steps), max(step.end_ns for step in steps)
    rows = np.flatnonzero((trace.kind >= Kind.OPERATOR) & (trace.kind <= Kind.OVERHEAD))
    start = trace.ts_ns[rows]
    return int(start.min()), int((start + trace.dur_ns[rows]).max())


def _repeated(trace: Trace, rows: NDArray[np.int64]) -> int:
    """How many of `rows` equal an earlier one, told by a 64-bit hash of what makes an event."""
    columns = (trace.ts_ns, trace.dur_ns, trace.name, trace.track)
    value = np.zeros(len(rows), np.uint64)
    for column, mixer in zip(columns, MIXERS, strict=True):
        value ^= column[rows].astype(np.uint64)
        value *= np.uint64(mixer)
        value ^= value >> np.uint64(29)
    for column in (trace.args.correlation, trace.args.external_id, trace.args.python_id, trace.args.event_index):
        value ^= column.at(rows, MISSING).astype(np.uint64)
        value *= np.uint64(MIXERS[0])
        value ^= value >> np.uint64(31)
    value.sort()
    return int(np.count_nonzero(value[1:] == value[:-1]))
