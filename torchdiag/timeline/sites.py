"""Where in a person's program a host thread was at an instant: operator, frame, annotation."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import forward, frames
from torchdiag.timeline.distinct import distinct
from torchdiag.timeline.loader import loader_events
from torchdiag.timeline.stacks import Stacks, user_frames
from torchdiag.trace import classify
from torchdiag.trace.columns import NO_TEXT, Ints, Sparse, Trace
from torchdiag.trace.vocabulary import STEP_MARK, Kind

Rows = NDArray[np.int64]

ENVELOPES = (
    "##",
    "AOTDispatcher ",
    "CompiledFunction",
    "DistributedDataParallel.forward",
    "FullyShardedDataParallel.forward",
    "ProfilerStep",
    "Pregraph bytecode",
    "Torch-Compiled Region",
    "TorchDynamo ",
    "autograd::engine::evaluate_function: CompiledFunction",
    "nn.Module: ",
)
"""Operators that wrap a region rather than do its work: the outermost operator is looked for inside them."""


@dataclass(frozen=True, slots=True, eq=False)
class Landmarks:
    """The events of a trace that places are told by, sorted once for every question about the trace."""

    trace: Trace
    operators: Stacks
    frames: Stacks
    call_stacks: Stacks
    calls: Stacks
    annotations: Stacks
    loaders: Stacks
    backward: Stacks
    origins: Ints
    """The forward operator of each backward operator, -1 where it is not known."""

    @classmethod
    def of(cls, trace: Trace) -> "Landmarks":
        """The landmarks of a trace."""
        operators = np.flatnonzero(trace.kind == Kind.OPERATOR)
        envelope = classify.by_name(trace, operators, lambda name: name.startswith(ENVELOPES)) != 0
        annotations = np.flatnonzero(trace.kind == Kind.ANNOTATION)
        mark = classify.by_name(trace, annotations, lambda name: name.startswith(STEP_MARK)) != 0
        backward = forward.backward_operators(trace)
        every = Stacks(trace, operators)
        origins = forward.forward_of(trace, backward, every)
        return cls(
            trace,
            operators=Stacks(trace, operators[~envelope]) if envelope.any() else every,
            frames=Stacks(trace, user_frames(trace)),
            call_stacks=Stacks(trace, _with_call_stack(trace)),
            calls=Stacks(trace, _called_by_users(trace)),
            annotations=Stacks(trace, annotations[~mark]),
            loaders=Stacks(trace, loader_events(trace)),
            backward=Stacks(trace, backward),
            origins=Sparse(backward.astype(np.uint32), origins),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """Rows of the events around m instants, int64[m] each, -1 where there is none.

    `operator` is the outermost operator, `frame` the innermost frame of a person's code, `call` what that frame was
    calling, where the trace tells from which line, `stack` an operator with a `Call stack` argument, `annotation` the
    innermost annotation that is no step mark (`stack` and `annotation` only where there is no frame). Inside a
    backward operator whose forward operator is known (`forward`) these tell of the forward operator, except where a
    person's own code runs in the backward pass.
    """

    operator: Rows
    frame: Rows
    call: Rows
    stack: Rows
    annotation: Rows
    forward: Rows

    def replaced(self, numbers: NDArray[np.int64], other: "Sites") -> "Sites":
        """These with the sites of some instants replaced by others."""
        columns = [getattr(self, field.name).copy() for field in fields(self)]
        for column, field in zip(columns, fields(self), strict=True):
            column[numbers] = getattr(other, field.name)
        return Sites(*columns)


def sites(
    landmarks: Landmarks, track: NDArray[np.int32], instant: NDArray[np.int64], in_operators: NDArray[np.bool_]
) -> Sites:
    """The surroundings of each `instant` (int64[m] nanoseconds) on `track` (int32[m], -1 for no thread).

    The operator is looked for only at the instants that `in_operators` (bool[m]) tells.
    """
    trace = landmarks.trace
    frame = landmarks.frames.innermost(track, instant)
    origin = _forward(landmarks, track, instant, frame)
    moved = np.flatnonzero(origin >= 0)
    if len(moved):
        track, instant = track.copy(), instant.copy()
        track[moved], instant[moved] = trace.track[origin[moved]], trace.ts_ns[origin[moved]]
        frame[moved] = landmarks.frames.innermost(track[moved], instant[moved])
    operator = np.full(len(instant), -1, np.int64)
    asked = np.flatnonzero(in_operators)
    operator[asked] = landmarks.operators.outermost(track[asked], instant[asked])
    operator[moved] = np.where(operator[moved] < 0, origin[moved], operator[moved])
    stack, annotation = np.full(len(instant), -1, np.int64), np.full(len(instant), -1, np.int64)
    bare = np.flatnonzero(frame < 0)
    stack[bare] = landmarks.call_stacks.innermost(track[bare], instant[bare])
    annotation[bare] = landmarks.annotations.innermost(track[bare], instant[bare])
    return Sites(operator, frame, _call(landmarks, track, instant, frame), stack, annotation, origin)


def _call(landmarks: Landmarks, track: NDArray[np.int32], instant: NDArray[np.int64], frame: Rows) -> Rows:
    """Rows of the frames that `frame` was calling. What a person's code calls from within it is no person's code."""
    call = np.full(len(instant), -1, np.int64)
    asked = np.flatnonzero(frame >= 0) if landmarks.calls else frame[:0]
    found = landmarks.calls.innermost(track[asked], instant[asked])
    start = landmarks.trace.ts_ns
    within = (found >= 0) & (found != frame[asked]) & (start[found] >= start[frame[asked]])
    call[asked[within]] = found[within]
    return call


def _forward(landmarks: Landmarks, track: NDArray[np.int32], instant: NDArray[np.int64], frame: Rows) -> Rows:
    """Rows of forward operators; -1 also where a person's own code runs inside the backward operator."""
    origin = np.full(len(instant), -1, np.int64)
    if not landmarks.backward:
        return origin
    backward = landmarks.backward.outermost(track, instant)
    start = landmarks.trace.ts_ns
    asked = np.flatnonzero((backward >= 0) & ((frame < 0) | (start[frame] < start[backward])))
    origin[asked] = landmarks.origins.at(backward[asked], -1)
    return origin


def _with_call_stack(trace: Trace) -> Rows:
    column = trace.args.call_stack
    if not len(column):
        return np.zeros(0, np.int64)
    empty = trace.texts.codes_where(lambda text: not text.strip(";"))
    told = (column.values != NO_TEXT) & ~empty[column.values]
    rows = column.rows[told].astype(np.int64)
    return rows[trace.kind[rows] == Kind.OPERATOR]


def _called_by_users(trace: Trace) -> Rows:
    """Rows of the Python frames that tell which line of a person's code called them."""
    column = trace.args.call_from
    by_user = np.zeros(len(trace.texts) + 1, np.bool_)  # the last is for NO_TEXT, which is -1
    for code in distinct(column.values[column.values != NO_TEXT]).tolist():
        by_user[code] = frames.is_user_line(trace.texts[code])
    rows = column.rows[by_user[column.values]].astype(np.int64)
    return rows[trace.kind[rows] == Kind.PYTHON]
