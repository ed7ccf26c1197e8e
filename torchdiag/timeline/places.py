"""Where idle time comes from: charged stretches gathered by the line or operator behind them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import groups as native
from torchdiag._native import lookup
from torchdiag.timeline import frames
from torchdiag.timeline.activity import Activities
from torchdiag.timeline.charges import Charges
from torchdiag.timeline.folding import folded
from torchdiag.timeline.place_label import GARBAGE_COLLECTION, Facts, label, operator
from torchdiag.timeline.result import Cause, IdleCause, Place
from torchdiag.timeline.sites import Landmarks, Sites, sites
from torchdiag.trace import classify
from torchdiag.trace.columns import NO_TEXT, Strings, Trace
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]
Codes = NDArray[np.int32]

CAUSES = tuple(Cause)
PYTHON, DATALOADER = CAUSES.index(Cause.PYTHON), CAUSES.index(Cause.DATALOADER)
TOLD_BY_FRAME = np.isin(np.arange(len(CAUSES)), [PYTHON, DATALOADER])
TOLD_BY_EVENT = np.array([cause in (Cause.PROFILER, Cause.UNKNOWN) for cause in CAUSES])
TOLD_BY_OPERATOR = ~TOLD_BY_FRAME & np.array([cause is not Cause.PROFILER for cause in CAUSES])
TOLD_BY_WORK = np.array([cause in (Cause.QUEUED, Cause.LAUNCH_LATENCY, Cause.UNATTRIBUTED) for cause in CAUSES])

T = TypeVar("T")


class _Features(NamedTuple, Generic[T]):
    """What the label of a stretch is made of: codes, -1 for none; of many stretches, a column of each."""

    cause: T
    operator: T
    frame: T
    line: T
    stack: T
    annotation: T
    backward: T
    event: T
    event_is_python: T
    kernel: T
    loader: T
    in_loader: T
    before: T


@dataclass(slots=True)
class _Sum:
    """Stretches that are alike: their time, their number, and a row of the longest of them (-1 for none)."""

    idle_ns: int
    count: int
    longest_ns: int
    event: int


def places(
    trace: Trace,
    blocks: Iterable[Charges],
    activities: Activities,
    top: int | None,
    landmarks: Landmarks | None = None,
) -> tuple[IdleCause, ...]:
    """Every `Cause` in the order of the enumeration, with its idle time and its `top` places (None for all).

    `blocks` are the charges of a device, those of one gap in one block, `activities` all that the device did. The
    places of a cause are longest first, then by label and file; all of them together hold the cause's idle time.
    `count` is the number of charged stretches. `landmarks` are those of the trace, for whoever asks more than once.
    """
    landmarks = landmarks or Landmarks.of(trace)
    sums: dict[_Features[int], _Sum] = {}
    for charges in blocks:
        for codes, block in _sums(landmarks, charges, activities):
            total = sums.get(codes)
            sums[codes] = block if total is None else _together(total, block)
    gathered: dict[Cause, list[Place]] = {cause: [] for cause in CAUSES}
    for codes, total in sums.items():
        facts = _facts(trace, codes)
        place = Place(
            label=label(facts),
            file=facts.frame.file if facts.frame else None,
            line=facts.frame.line if facts.frame else None,
            function=facts.frame.function if facts.frame else None,
            operator=operator(facts),
            idle_ns=total.idle_ns,
            count=total.count,
            event=total.event if total.event >= 0 else None,
        )
        gathered[facts.cause].append(place)
    return tuple(
        IdleCause(
            cause,
            sum(place.idle_ns for place in found),
            sum(place.count for place in found),
            tuple(merged(found)[:top]),
        )
        for cause, found in gathered.items()
    )


def _sums(landmarks: Landmarks, charges: Charges, activities: Activities) -> Iterator[tuple[_Features[int], _Sum]]:
    """The stretches of a block, gathered by what their labels are made of."""
    first_gap = int(charges.gap[0]) if len(charges) else 0
    gap = charges.gap - first_gap
    gap_end = np.zeros(int(gap.max(initial=-1)) + 1, np.int64)
    np.maximum.at(gap_end, gap, charges.end_ns)
    folds = folded(landmarks.trace, charges)
    charges = folds.charges
    features = _features(landmarks, charges, gap_end[charges.gap - first_gap], activities)
    group, first = _groups(features)
    idle, count, longest = np.zeros((3, len(first)), np.int64)
    np.add.at(idle, group, folds.idle_ns)
    np.add.at(count, group, folds.count)
    np.maximum.at(longest, group, folds.idle_ns)
    shown = first.copy()
    candidates = np.flatnonzero(folds.idle_ns == longest[group])[::-1]
    shown[group[candidates]] = candidates
    event = np.where(charges.event[shown] >= 0, charges.event[shown], charges.launch[shown])
    codes = zip(*(column[first].tolist() for column in features), strict=True)
    sums = zip(idle.tolist(), count.tolist(), longest.tolist(), event.tolist(), strict=True)
    return ((_Features(*code), _Sum(*total)) for code, total in zip(codes, sums, strict=True))


def _together(one: _Sum, other: _Sum) -> _Sum:
    main = one if one.longest_ns >= other.longest_ns else other
    return _Sum(one.idle_ns + other.idle_ns, one.count + other.count, main.longest_ns, main.event)


def merged(found: Iterable[Place]) -> list[Place]:
    """Places of one label and file in one; longest first, then by label and file."""
    distinct: dict[tuple[str, str | None], Place] = {}
    for place in found:
        same = distinct.get((place.label, place.file))
        distinct[place.label, place.file] = place if same is None else _sum(same, place)
    return sorted(distinct.values(), key=lambda place: (-place.idle_ns, place.label, place.file or ""))


def _sum(one: Place, other: Place) -> Place:
    main = one if one.idle_ns >= other.idle_ns else other
    return replace(main, idle_ns=one.idle_ns + other.idle_ns, count=one.count + other.count)


def _features(
    landmarks: Landmarks, charges: Charges, gap_end: NDArray[np.int64], activities: Activities
) -> _Features[Codes]:
    trace, cause = landmarks.trace, charges.cause.astype(np.int32)
    event = np.where((charges.event >= 0) | (cause == PYTHON), charges.event, charges.launch)
    event_is_python = (event >= 0) & (trace.kind[event] == Kind.PYTHON)
    around = _around(landmarks, charges, TOLD_BY_OPERATOR[cause])
    before = _before(charges, around, (cause == PYTHON) & ~event_is_python)
    event[before] = charges.launch[before]
    track, instant = trace.track[event[before]], trace.ts_ns[event[before]]
    around = around.replaced(before, sites(landmarks, track, instant, np.ones(len(before), np.bool_)))
    loader, in_loader = _loader(landmarks, charges, around, cause == DATALOADER)
    return _Features(
        cause=cause,
        operator=_names(trace, around.operator, around.operator >= 0),
        frame=_names(trace, around.frame, around.frame >= 0),
        line=np.where(around.call >= 0, trace.args.call_from.at(around.call, NO_TEXT), np.int32(NO_TEXT)),
        stack=np.where(around.stack >= 0, trace.args.call_stack.at(around.stack, NO_TEXT), NO_TEXT),
        annotation=_names(trace, around.annotation, around.annotation >= 0),
        backward=(around.forward >= 0).astype(np.int32),
        event=_names(trace, event, (event >= 0) & _event_tells(trace, around, event, cause)),
        event_is_python=event_is_python.astype(np.int32),
        kernel=_kernels(trace, charges.launch, gap_end, activities, TOLD_BY_WORK[cause] & (around.operator < 0)),
        loader=loader,
        in_loader=in_loader,
        before=_flags(before, len(charges)),
    )


def _event_tells(trace: Trace, around: Sites, event: Rows, cause: Codes) -> NDArray[np.bool_]:
    """Where a label needs the event's own name; built-ins carry addresses, so that most names are like no other."""
    told = (around.operator < 0) & ~TOLD_BY_FRAME[cause]
    python = np.flatnonzero((event >= 0) & (cause == PYTHON))
    collection = classify.by_name(trace, event[python], GARBAGE_COLLECTION.__eq__) != 0
    told[python] = (around.frame[python] < 0) | collection
    return told | TOLD_BY_EVENT[cause]


def _around(landmarks: Landmarks, charges: Charges, in_operators: NDArray[np.bool_]) -> Sites:
    """The surroundings of a charged event while it was innermost, else of the launch that was waited for."""
    trace = landmarks.trace
    # Time that no host event covers has no surroundings: what came next is told apart, as what it is.
    by_launch = (charges.event < 0) & (charges.launch >= 0) & (charges.cause != PYTHON)
    track = np.where(charges.event >= 0, charges.track, np.int32(-1))
    track[by_launch] = trace.track[charges.launch[by_launch]]
    instant = charges.start_ns.copy()
    instant[by_launch] = trace.ts_ns[charges.launch[by_launch]]
    return sites(landmarks, track, instant, in_operators)


def _before(charges: Charges, around: Sites, asked: NDArray[np.bool_]) -> Rows:
    """Numbers of the stretches told by what came next: nothing but a step mark was recorded while they lasted."""
    unknown = (around.frame < 0) & (around.stack < 0) & (around.annotation < 0)
    return np.flatnonzero(asked & unknown & (charges.launch >= 0))


def _loader(landmarks: Landmarks, charges: Charges, around: Sites, asked: NDArray[np.bool_]) -> tuple[Codes, Codes]:
    """Name codes of the data loader's events around stretches, and whether the frame lies inside them."""
    trace = landmarks.trace
    loader = np.full(len(charges), -1, np.int64)
    stretch = np.flatnonzero(asked)
    loader[stretch] = landmarks.loaders.outermost(charges.track[stretch], charges.start_ns[stretch])
    inside = (loader >= 0) & (around.frame >= 0) & (trace.ts_ns[around.frame] >= trace.ts_ns[loader])
    return _names(trace, loader, loader >= 0), inside.astype(np.int32)


def _kernels(
    trace: Trace, launch: Rows, gap_end: NDArray[np.int64], activities: Activities, asked: NDArray[np.bool_]
) -> Codes:
    """Name codes of the work that ended the gaps of the stretches asked for."""
    kernel = np.full(len(launch), NO_TEXT, np.int32)
    stretch = np.flatnonzero(asked)
    place = lookup.places(activities.start_ns, gap_end[stretch])
    # Several activities may start together: take the one that the gap's launch call made.
    while len(stretch):
        inside = place < len(activities)
        stretch, place = stretch[inside], place[inside]
        begins = activities.start_ns[place] == gap_end[stretch]
        stretch, place = stretch[begins], place[begins]
        found = activities.launch[place] == launch[stretch]
        kernel[stretch[found]] = trace.name[activities.row[place[found]]]
        stretch, place = stretch[~found], place[~found] + 1
    return kernel


def _names(trace: Trace, rows: Rows, told: NDArray[np.bool_]) -> Codes:
    return np.where(told, trace.name[rows], np.int32(NO_TEXT))


def _flags(numbers: Rows, length: int) -> Codes:
    flags = np.zeros(length, np.int32)
    flags[numbers] = 1
    return flags


def _groups(columns: _Features[Codes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of each stretch's group (equal in all columns), and the first stretch of each group.

    Groups are in the order of their codes, columns of few codes counting first, whatever the order of the stretches.
    """
    group, first = native.groups(columns)
    told = sorted((column[first] for column in columns), key=lambda column: int(column.max(initial=0)))
    order = np.lexsort(told[::-1])
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[group], first[order]


def _facts(trace: Trace, codes: _Features[int]) -> Facts:
    def text(code: int, strings: Strings = trace.names) -> str | None:
        return strings[code] if code >= 0 else None

    name, loader, in_loader = text(codes.frame), text(codes.loader), bool(codes.in_loader)
    frame = frames.parse(name) if name is not None else None
    if frame is not None and (line := text(codes.line, trace.texts)) is not None:
        frame = frame.running(line)
    stack = frames.call_stack(text(codes.stack, trace.texts) or "")
    if stack:
        inside = frames.innermost_user(frames.inside_loader(stack)) if loader is not None else None
        frame, in_loader = inside or frames.innermost_user(stack), inside is not None
    return Facts(
        cause=CAUSES[codes.cause],
        operator=text(codes.operator),
        backward=bool(codes.backward),
        frame=frame,
        annotation=text(codes.annotation),
        event=text(codes.event),
        event_is_python=bool(codes.event_is_python),
        kernel=text(codes.kernel),
        loader=loader,
        in_loader=in_loader,
        before=bool(codes.before),
    )
