"""Where idle time comes from: charged stretches gathered by the line or operator behind them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import frames, stacks
from torchdiag.timeline.activity import Activities
from torchdiag.timeline.charges import Charges
from torchdiag.timeline.loader import loader_events
from torchdiag.timeline.place_label import GARBAGE_COLLECTION, Facts, label, operator
from torchdiag.timeline.result import Cause, IdleCause, Place
from torchdiag.timeline.sites import Sites, sites
from torchdiag.trace import classify
from torchdiag.trace.columns import NO_TEXT, Strings, Trace
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]

CAUSES = tuple(Cause)
PYTHON, DATALOADER = CAUSES.index(Cause.PYTHON), CAUSES.index(Cause.DATALOADER)
EVENT_NAMED = [CAUSES.index(cause) for cause in (Cause.PROFILER, Cause.UNKNOWN)]
WORK_NAMED = [CAUSES.index(cause) for cause in (Cause.QUEUED, Cause.LAUNCH_LATENCY, Cause.UNATTRIBUTED)]


@dataclass(frozen=True, slots=True, eq=False)
class _Features:
    """What the label of each stretch is made of: one int64 code a stretch and column, -1 for none."""

    cause: NDArray[np.int64]
    operator: NDArray[np.int64]
    frame: NDArray[np.int64]
    stack: NDArray[np.int64]
    annotation: NDArray[np.int64]
    backward: NDArray[np.int64]
    event: NDArray[np.int64]
    event_is_python: NDArray[np.int64]
    kernel: NDArray[np.int64]
    loader: NDArray[np.int64]
    in_loader: NDArray[np.int64]
    before: NDArray[np.int64]

    def columns(self) -> tuple[NDArray[np.int64], ...]:
        return tuple(getattr(self, name) for name in self.__slots__)


def places(trace: Trace, charges: Charges, activities: Activities, top: int | None) -> tuple[IdleCause, ...]:
    """Every `Cause` in the order of the enumeration, with its idle time and its `top` places (None for all).

    The places of a cause are longest first, then by label and file; all of them together hold the cause's idle time.
    `count` is the number of charged stretches.
    """
    features = _features(trace, charges, activities)
    length = charges.end_ns - charges.start_ns
    group, first = _groups(features.columns())
    idle = np.zeros(len(first), np.int64)
    np.add.at(idle, group, length)
    count = np.bincount(group, minlength=len(first))
    longest = np.lexsort((-length, group))
    shown = longest[np.searchsorted(group[longest], np.arange(len(first)))]
    event = np.where(charges.event >= 0, charges.event, charges.launch)[shown]
    gathered: dict[Cause, dict[tuple[str, str | None], Place]] = {cause: {} for cause in CAUSES}
    for number, stretch in enumerate(first.tolist()):
        facts = _facts(trace, features, stretch)
        words, file = label(facts), facts.frame.file if facts.frame else None
        place = Place(
            label=words,
            file=file,
            line=facts.frame.line if facts.frame else None,
            function=facts.frame.function if facts.frame else None,
            operator=operator(facts),
            idle_ns=int(idle[number]),
            count=int(count[number]),
            event=int(event[number]) if event[number] >= 0 else None,
        )
        same = gathered[facts.cause]
        same[words, file] = _sum(same[words, file], place) if (words, file) in same else place
    return tuple(_cause(cause, list(gathered[cause].values()), top) for cause in CAUSES)


def _cause(cause: Cause, found: list[Place], top: int | None) -> IdleCause:
    found.sort(key=lambda place: (-place.idle_ns, place.label, place.file or ""))
    return IdleCause(
        cause, sum(place.idle_ns for place in found), sum(place.count for place in found), tuple(found[:top])
    )


def _sum(one: Place, other: Place) -> Place:
    main = one if one.idle_ns >= other.idle_ns else other
    return Place(
        main.label,
        main.file,
        main.line,
        main.function,
        main.operator,
        one.idle_ns + other.idle_ns,
        one.count + other.count,
        main.event,
    )


def _features(trace: Trace, charges: Charges, activities: Activities) -> _Features:
    cause = charges.cause.astype(np.int64)
    around = _around(trace, charges)
    event = np.where((charges.event >= 0) | (cause == PYTHON), charges.event, charges.launch)
    event_is_python = (event >= 0) & (trace.kind[event] == Kind.PYTHON)
    before = _before(charges, around, (cause == PYTHON) & ~event_is_python)
    around = _replaced(
        around, before, sites(trace, trace.track[charges.launch[before]], trace.ts_ns[charges.launch[before]])
    )
    event[before] = charges.launch[before]
    loader, in_loader = _loader(trace, charges, around, cause == DATALOADER)
    return _Features(
        cause=cause,
        operator=_names(trace, around.operator, around.operator >= 0),
        frame=_names(trace, around.frame, around.frame >= 0),
        stack=_call_stacks(trace, around),
        annotation=_names(trace, around.annotation, around.annotation >= 0),
        backward=(around.forward >= 0).astype(np.int64),
        event=_names(trace, event, (event >= 0) & _event_tells(trace, around, event, cause)),
        event_is_python=event_is_python.astype(np.int64),
        kernel=_kernels(trace, charges, activities, np.isin(cause, WORK_NAMED) & (around.operator < 0)),
        loader=loader,
        in_loader=in_loader,
        before=np.isin(np.arange(len(charges)), before).astype(np.int64),
    )


def _event_tells(trace: Trace, around: Sites, event: Rows, cause: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where a label needs the event's own name; built-ins carry addresses, so that most names are like no other."""
    collection = np.zeros(len(event), np.bool_)
    python = np.flatnonzero((event >= 0) & (cause == PYTHON))
    collection[python] = classify.by_name(trace, event[python], GARBAGE_COLLECTION.__eq__) != 0
    nothing_else = np.where(cause == PYTHON, (around.frame < 0) | collection, around.operator < 0)
    return nothing_else | np.isin(cause, EVENT_NAMED)


def _around(trace: Trace, charges: Charges) -> Sites:
    """The surroundings of a charged event while it was innermost, else of the launch that was waited for."""
    by_launch = (charges.event < 0) & (charges.launch >= 0)
    track = np.where(by_launch, trace.track[charges.launch], charges.track).astype(np.int32)
    track[(charges.event < 0) & ~by_launch] = -1
    # Time that no host event covers has no surroundings: what came next is told apart, as what it is.
    track[by_launch & (charges.cause == PYTHON)] = -1
    return sites(trace, track, np.where(by_launch, trace.ts_ns[charges.launch], charges.start_ns))


def _before(charges: Charges, around: Sites, asked: NDArray[np.bool_]) -> Rows:
    """Numbers of the stretches told by what came next: nothing but a step mark was recorded while they lasted."""
    unknown = (around.frame < 0) & (around.stack < 0) & (around.annotation < 0)
    return np.flatnonzero(asked & unknown & (charges.launch >= 0))


def _replaced(around: Sites, numbers: Rows, by: Sites) -> Sites:
    """The surroundings with those of some stretches replaced."""
    columns = {name: getattr(around, name).copy() for name in Sites.__slots__}
    for name, column in columns.items():
        column[numbers] = getattr(by, name)
    return Sites(**columns)


def _loader(
    trace: Trace, charges: Charges, around: Sites, asked: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Name codes of the data loader's events around stretches, and whether the frame lies inside them."""
    loader = np.full(len(charges), -1, np.int64)
    stretch = np.flatnonzero(asked)
    loader[stretch] = stacks.outermost(trace, loader_events(trace), charges.track[stretch], charges.start_ns[stretch])
    inside = (loader >= 0) & (around.frame >= 0) & (trace.ts_ns[around.frame] >= trace.ts_ns[loader])
    return _names(trace, loader, loader >= 0), inside.astype(np.int64)


def _kernels(trace: Trace, charges: Charges, activities: Activities, asked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Name codes of the work that ended the gaps of the stretches asked for."""
    kernel = np.full(len(charges), -1, np.int64)
    stretch = np.flatnonzero(asked)
    if not len(stretch) or not len(activities):
        return kernel
    gap_end = np.zeros(int(charges.gap.max()) + 1, np.int64)
    np.maximum.at(gap_end, charges.gap, charges.end_ns)
    order = np.lexsort((activities.row, activities.start_ns))
    place = np.searchsorted(activities.start_ns[order], gap_end[charges.gap[stretch]])
    # Several activities may start together: take the one that the gap's launch call made.
    while len(stretch):
        inside = place < len(order)
        stretch, place = stretch[inside], place[inside]
        begins = activities.start_ns[order[place]] == gap_end[charges.gap[stretch]]
        stretch, place = stretch[begins], place[begins]
        found = activities.launch[order[place]] == charges.launch[stretch]
        kernel[stretch[found]] = trace.name[activities.row[order[place[found]]]]
        stretch, place = stretch[~found], place[~found] + 1
    return kernel


def _names(trace: Trace, rows: Rows, told: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.where(told, trace.name[rows], -1).astype(np.int64)


def _call_stacks(trace: Trace, around: Sites) -> NDArray[np.int64]:
    asked = (around.frame < 0) & (around.stack >= 0)
    return np.where(asked, trace.args.call_stack.at(around.stack, NO_TEXT), -1).astype(np.int64)


def _groups(columns: tuple[NDArray[np.int64], ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of each stretch's group (equal in all columns), and the first stretch of each group."""
    key, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        values = int(column.max(initial=-1)) + 2
        if size * values >= 1 << 62:
            distinct, key = np.unique(key, return_inverse=True)
            size = len(distinct)
        key, size = key * values + column + 1, size * values
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return group, first


def _facts(trace: Trace, features: _Features, stretch: int) -> Facts:
    def text(column: NDArray[np.int64], strings: Strings = trace.names) -> str | None:
        return strings[int(column[stretch])] if column[stretch] >= 0 else None

    name, loader, in_loader = text(features.frame), text(features.loader), bool(features.in_loader[stretch])
    frame = frames.parse(name) if name is not None else None
    stack = frames.call_stack(text(features.stack, trace.texts) or "")
    if stack:
        inside = frames.innermost_user(frames.inside_loader(stack)) if loader is not None else None
        frame, in_loader = inside or frames.innermost_user(stack), inside is not None
    return Facts(
        cause=CAUSES[int(features.cause[stretch])],
        operator=text(features.operator),
        backward=bool(features.backward[stretch]),
        frame=frame,
        annotation=text(features.annotation),
        event=text(features.event),
        event_is_python=bool(features.event_is_python[stretch]),
        kernel=text(features.kernel),
        loader=loader,
        in_loader=in_loader,
        before=bool(features.before[stretch]),
    )
