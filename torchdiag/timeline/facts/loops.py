"""Loops of a program that do the same few operators for one element after the other."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.distinct import numbered
from torchdiag.timeline.facts.averages import averages
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.inputs import inputs
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.operator_order import operator_order
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.stacks import user_frames
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]

IN_A_CALL = 24
"""So many calls of an operator on one shape in one call of a function are a loop, if no module is called between."""
IN_A_ROW = 32
"""Without stacks: so many times the same few operators, one of which picks an element."""
PICKS = ("aten::select", "aten::slice", "aten::narrow", "aten::index", "aten::index_select")
VIEWS = frozenset(
    f"aten::{name}"
    for name in (
        *("select", "slice", "view", "reshape", "unsqueeze", "squeeze", "transpose", "permute", "expand", "detach"),
        *("alias", "as_strided", "narrow", "unbind", "split", "chunk", "t", "to", "empty", "item", "is_nonzero"),
        *("_local_scalar_dense", "resolve_conj", "resolve_neg", "lift_fresh", "unflatten", "flatten"),
    )
)
"""What computes nothing: alone, it makes no loop worth batching."""
MODULE = re.compile(r"^nn\.Module: |torch[/\\]nn[/\\]modules[/\\]module\.py\(\d+\): _(wrapped_)?call_impl$")
CELLS = ("aten::lstm_cell", "aten::gru_cell", "aten::rnn_tanh_cell", "aten::rnn_relu_cell")
"""Loops over these are recurrent networks, whatever else a round does."""
OWN = re.compile(r"^Optimizer\.(step|zero_grad)#|^autograd::engine::evaluate_function")


@dataclass(frozen=True, eq=False)
class Loop:
    """One execution of a loop: `first` and `last` row of its operators, how many `rounds` it makes, and `often`, all
    the operators of it that the rounds call. `operator` is the name of one that computes."""

    first: int
    last: int
    rounds: int
    often: int
    operator: str


def loops(facts: Facts) -> tuple[Loop, ...]:
    """The loops of steady steps, outside of optimizers, averages of weights, the backward pass and recurrent cells."""
    trace, order = facts.trace, facts.get(operator_order)
    tops = facts.get(steady).rows(facts, order.row)
    own = FramesAround.named(facts, lambda name: OWN.search(name) is not None, Kind.ANNOTATION, Kind.OPERATOR)
    tops = tops[~own.around(tops) & ~trace.names.codes_where(CELLS.__contains__)[trace.name[tops]]]
    averaging = np.zeros(len(order.row) + 1, np.bool_)
    for one in facts.get(averages):
        averaging[order.position[one.first] : order.position[one.last] + 1] = True
    tops = tops[~averaging[order.position[tops]]]
    if (trace.kind == Kind.PYTHON).any():
        return tuple(_in_calls(facts, tops))
    return tuple(_in_rows(facts, tops))


def _in_calls(facts: Facts, tops: Rows) -> Iterator[Loop]:
    """Loops within one call of a function that a person wrote."""
    trace, tree = facts.trace, facts.get(nesting)
    users = tree.mask(user_frames(trace))
    modules = named(trace, Kind.PYTHON, lambda name: MODULE.search(name) is not None)
    frame = tree.nearest(tops, users | tree.mask(modules))
    direct = (frame >= 0) & users[frame]
    tops, frame = tops[direct], frame[direct]
    step = facts.get(steady).of(trace.ts_ns[tops])
    call = numbered(frame * (len(facts.get(steady)) + 1) + step)[1]
    alike = _alike(call, trace.name[tops].astype(np.int64), facts.get(inputs).codes(tops))
    often = np.bincount(alike, minlength=1)[alike]
    wanted = (often >= IN_A_CALL) & ~trace.names.codes_where(VIEWS.__contains__)[trace.name[tops]]
    for number in sorted(set(call[wanted].tolist())):
        here = np.flatnonzero(call == number)
        computing = here[wanted[here]]
        rounds = int(often[computing].max())
        main = computing[alike[computing] == alike[computing[often[computing] == rounds][0]]]
        low, high = int(tops[main[0]]), int(tops[main[-1]])
        if 2 * _between(trace, modules, low, high) < rounds:
            yield Loop(low, high, rounds, _between(trace, tops[here], low, high) + 2, trace.names[int(trace.name[low])])


def _alike(*columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Equal numbers for what is equal in every column."""
    found = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = numbered(column)[1]
        found = numbered(found * (int(code.max(initial=0)) + 1) + code)[1]
    return found


def _between(trace: Trace, rows: Rows, low: int, high: int) -> int:
    """How many of the rows begin between two others on their thread."""
    start = trace.ts_ns[rows[trace.track[rows] == trace.track[low]]]
    return int(np.count_nonzero((start > trace.ts_ns[low]) & (start < trace.ts_ns[high])))


def _in_rows(facts: Facts, tops: Rows) -> Iterator[Loop]:
    """Loops told by the operators alone: the same few again and again, one of them picking an element."""
    trace = facts.trace
    picks = "".join(
        re.escape(chr(FIRST + code)) for code in np.flatnonzero(trace.names.codes_where(PICKS.__contains__))
    )
    if not picks:
        return
    pattern = re.compile(rf"(?P<unit>[{picks}].{{1,11}}?)(?P=unit){{{IN_A_ROW - 1},}}", re.DOTALL)
    views = trace.names.codes_where(VIEWS.__contains__)
    for track in np.flatnonzero(np.bincount(trace.track[tops], minlength=1)).tolist():
        mine = tops[trace.track[tops] == track]
        text = "".join(map(chr, (trace.name[mine] + FIRST).tolist()))
        for match in pattern.finditer(text):
            members = mine[match.start() : match.end()]
            unit = members[: len(match["unit"])]
            computing = unit[~views[trace.name[unit]]]
            if len(computing):
                name = trace.names[int(trace.name[computing[0]])]
                yield Loop(int(members[0]), int(members[-1]), len(members) // len(unit), len(members), name)


FIRST = 0x10000
"""Where the characters begin that stand for names: above all that mean something in a pattern."""
