"""Where in a person's program a host thread was at an instant: operator, frame, annotation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import forward, stacks
from torchdiag.trace import classify
from torchdiag.trace.columns import NO_TEXT, Trace
from torchdiag.trace.vocabulary import Kind

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
class Sites:
    """Rows of the events around m instants, int64[m] each, -1 where there is none.

    `operator` is the outermost operator, `frame` the innermost frame of a person's code, `stack` an operator with a
    `Call stack` argument, `annotation` the innermost annotation that is no step mark. `backward` is the backward
    operator around the instant; where its forward operator is known (`forward`), the other columns tell about that.
    """

    operator: Rows
    frame: Rows
    stack: Rows
    annotation: Rows
    backward: Rows
    forward: Rows


def sites(trace: Trace, track: NDArray[np.int32], instant: NDArray[np.int64]) -> Sites:
    """The surroundings of each `instant` (int64[m] nanoseconds) on `track` (int32[m], -1 for no thread)."""
    operators = np.flatnonzero(trace.kind == Kind.OPERATOR)
    frames = stacks.user_frames(trace)
    backward = stacks.outermost(trace, forward.backward_operators(trace), track, instant)
    frame = stacks.innermost(trace, frames, track, instant)
    origin = _forward(trace, backward, frame)
    moved = np.flatnonzero(origin >= 0)
    track, instant = track.copy(), instant.copy()
    track[moved], instant[moved] = trace.track[origin[moved]], trace.ts_ns[origin[moved]]
    frame[moved] = stacks.innermost(trace, frames, track[moved], instant[moved])
    operator = stacks.outermost(trace, _not_envelopes(trace, operators), track, instant)
    return Sites(
        operator=np.where((origin >= 0) & (operator < 0), origin, operator),
        frame=frame,
        stack=stacks.innermost(trace, _with_call_stack(trace), track, instant),
        annotation=stacks.innermost(trace, _annotations(trace), track, instant),
        backward=backward,
        forward=origin,
    )


def _forward(trace: Trace, backward: Rows, frame: Rows) -> Rows:
    """Rows of forward operators; -1 also where a person's own code runs inside the backward operator."""
    origin = np.full(len(backward), -1, np.int64)
    own_code = (frame >= 0) & (trace.ts_ns[frame] >= trace.ts_ns[backward])
    asked = np.flatnonzero((backward >= 0) & ~own_code)
    origin[asked] = forward.forward_of(trace, backward[asked])
    return origin


def _not_envelopes(trace: Trace, operators: Rows) -> Rows:
    return operators[classify.by_name(trace, operators, lambda name: name.startswith(ENVELOPES)) == 0]


def _annotations(trace: Trace) -> Rows:
    rows = np.flatnonzero(trace.kind == Kind.ANNOTATION)
    return rows[classify.by_name(trace, rows, lambda name: name.startswith("ProfilerStep")) == 0]


def _with_call_stack(trace: Trace) -> Rows:
    column = trace.args.call_stack
    if not len(column):
        return np.zeros(0, np.int64)
    empty = trace.texts.codes_where(lambda text: not text.strip(";"))
    told = (column.values != NO_TEXT) & ~empty[column.values]
    rows = column.rows[told].astype(np.int64)
    return rows[trace.kind[rows] == Kind.OPERATOR]
