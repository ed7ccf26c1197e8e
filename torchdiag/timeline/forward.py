"""From an operator of the backward pass to the forward operator that asked for it."""

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import lookup
from torchdiag.timeline.distinct import among, distinct
from torchdiag.timeline.stacks import Stacks
from torchdiag.trace import classify
from torchdiag.trace.columns import MISSING, Trace
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]

NEVER_DIFFERENTIATED = frozenset({"aten::detach", "aten::detach_", "detach", "detach_"})
"""Operators that carry the sequence number of the next node without ever making one."""

FORWARD_FLOWS = frozenset({"fwdbwd", "forward_backward"})


def backward_operators(trace: Trace) -> Rows:
    """Rows of the operators that carry the id of a forward thread, ascending: the nodes of the backward pass."""
    carried = trace.args.forward_thread
    rows = carried.rows[carried.values > 0].astype(np.int64)
    return rows[trace.kind[rows] == Kind.OPERATOR]


def forward_of(trace: Trace, backward: Rows, operators: Stacks | None = None) -> Rows:
    """The row of the forward operator of each backward operator, -1 where the trace does not tell.

    `backward` is int64[m], rows of operators, ascending and distinct. A `fwdbwd` flow that ends inside the operator
    decides; without one, the sequence number does, among the operators of the forward thread (of nested ones with one
    number, the innermost: it made the node). `operators` are all of the trace, for whoever has them.
    """
    found = _by_flow(trace, backward, operators)
    rest = np.flatnonzero(found < 0)
    found[rest] = _by_sequence(trace, backward[rest])
    known = np.flatnonzero(found >= 0)
    wrong = classify.by_name(trace, found[known], NEVER_DIFFERENTIATED.__contains__) != 0
    found[known[wrong]] = -1
    return found


def _by_flow(trace: Trace, backward: Rows, operators: Stacks | None) -> Rows:
    found = np.full(len(backward), -1, np.int64)
    categories = np.append(trace.categories.codes_where(FORWARD_FLOWS.__contains__), False)
    if not len(backward) or not categories.any():
        return found
    told = np.flatnonzero(categories[trace.category[trace.flow_id.rows]])  # the last is for NO_TEXT, which is -1
    flows, ids = trace.flow_id.rows[told].astype(np.int64), trace.flow_id.values[told]
    ends = np.flatnonzero(trace.phase[flows] == ord("f"))
    starts = np.flatnonzero(trace.phase[flows] == ord("s"))
    if not len(ends) or not len(starts):
        return found
    node = Stacks(trace, backward).outermost(trace.track[flows[ends]], trace.ts_ns[flows[ends]])
    inside = node >= 0
    node, node_id = node[inside], ids[ends][inside]
    start_order = np.argsort(ids[starts], kind="stable")
    start_ids, start_rows = ids[starts][start_order], flows[starts][start_order]
    place = np.minimum(lookup.places(start_ids, node_id), len(start_ids) - 1)
    paired = start_ids[place] == node_id
    node, begin = node[paired], start_rows[place[paired]]
    if operators is None:
        operators = Stacks(trace, np.flatnonzero(trace.kind == Kind.OPERATOR))
    forward = operators.innermost(trace.track[begin], trace.ts_ns[begin])
    known = forward >= 0
    # Of several flows into one node the first in the file counts: assigning in reverse leaves it last.
    found[lookup.places(backward, node[known])[::-1]] = forward[known][::-1]
    return found


def _by_sequence(trace: Trace, backward: Rows) -> Rows:
    found = np.full(len(backward), -1, np.int64)
    numbers = trace.args.sequence_number
    wanted = numbers.at(backward, MISSING)
    threads = trace.args.forward_thread.at(backward, 0)
    rows = numbers.rows[among(numbers.values, wanted[wanted != MISSING])].astype(np.int64)
    rows = rows[(trace.kind[rows] == Kind.OPERATOR) & (trace.args.forward_thread.at(rows, 0) <= 0)]
    if not len(rows):
        return found
    for thread in distinct(threads).tolist():
        here = np.flatnonzero((threads == thread) & (wanted != MISSING))
        # Numbers count up per forward thread, whose profiler id is written nowhere else: the track that has most of
        # the wanted numbers is the thread.
        theirs = rows[among(numbers.at(rows, MISSING), wanted[here])]
        if not len(theirs):
            continue
        track = np.bincount(trace.track[theirs]).argmax()
        theirs = theirs[trace.track[theirs] == track]
        theirs = theirs[np.lexsort((theirs, trace.ts_ns[theirs], numbers.at(theirs, MISSING)))]
        place = np.searchsorted(numbers.at(theirs, MISSING), wanted[here], "right") - 1
        candidate = theirs[np.maximum(place, 0)]
        fits = (place >= 0) & (numbers.at(candidate, MISSING) == wanted[here])
        fits &= trace.ts_ns[candidate] <= trace.ts_ns[backward[here]]
        found[here[fits]] = candidate[fits]
    return found
