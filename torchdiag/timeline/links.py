"""Which call launched a device activity: by correlation, else by flow, else by External id."""

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import lookup as native
from torchdiag.timeline.distinct import among, firsts, numbered
from torchdiag.trace import classify
from torchdiag.trace.columns import MISSING, Ints, Trace
from torchdiag.trace.vocabulary import BLOCKING_COPY, LAUNCH_FLOWS, Call, Kind

Rows = NDArray[np.int64]

UNLINKED = -1


def launches(trace: Trace, activity: Rows) -> Rows:
    """int64[k]: the row of the call that launched each activity (a row, in any order), -1 for unlinked work.

    A graph launch owns every activity with its correlation. Traces from before Kineto have no calls; there the
    launching operator stands for one.
    """
    correlation = identifiers(trace.args.correlation, activity)
    launch = by_correlation(trace, correlation)
    left = np.flatnonzero(launch == UNLINKED)
    if len(left):
        launch[left] = by_flow(trace, activity[left])
        left = left[(launch[left] == UNLINKED) & (correlation[left] == 0)]
    if len(left):
        launch[left] = by_external_id(trace, activity[left])
    return launch


def identifiers(column: Ints, rows: Rows) -> Rows:
    """The identifiers at `rows`, 0 for none."""
    found = column.at(rows, 0)
    found[found == MISSING] = 0
    return found


def runtime_rows(trace: Trace, column: Ints) -> Rows:
    """Rows of runtime calls that have a value in a column, ascending."""
    return column.rows[trace.kind[column.rows] == Kind.RUNTIME].astype(np.int64)


def ranks(trace: Trace, calls: Rows) -> NDArray[np.uint8]:
    """0 for calls that launch or copy, 1 for the others, which may share an identifier with them."""
    call = trace.call[calls]
    rank = np.where((call == Call.LAUNCH) | (call == Call.COPY), np.uint8(0), np.uint8(1))
    sync = np.flatnonzero(call == Call.SYNC)
    rank[sync] = classify.by_name(trace, calls[sync], lambda name: BLOCKING_COPY.search(name) is None)
    return rank


def by_correlation(trace: Trace, correlation: Rows) -> Rows:
    """int64[k]: the call with each correlation; where several have it, the one that launches, else the earliest."""
    column = trace.args.correlation
    # Places, not a mask: numpy is several times slower at picking by one whose values change all the time.
    here = np.flatnonzero((trace.kind[column.rows] == Kind.RUNTIME) & (column.values != 0) & (column.values != MISSING))
    calls, key = column.rows[here].astype(np.int64), column.values[here]
    if np.any(key[1:] < key[:-1]):
        order = np.argsort(key, kind="stable")
        calls, key = calls[order], key[order]
    if np.any(key[1:] == key[:-1]):
        order = np.lexsort((calls, trace.ts_ns[calls], ranks(trace, calls), key))
        calls, key = calls[order], key[order]
    return np.where(correlation == 0, UNLINKED, lookup(key, calls, correlation))


def by_flow(trace: Trace, activity: Rows) -> Rows:
    """int64[k]: the call at the other end of the flow that arrives at the start of each activity."""
    none = np.full(len(activity), UNLINKED, np.int64)
    flows = trace.flow_id.rows.astype(np.int64)
    wanted = trace.categories.codes_where(LAUNCH_FLOWS.__contains__)
    if not wanted.any() or not len(flows):
        return none
    here = np.append(wanted, False)[trace.category[flows]]  # the last is for NO_TEXT, which is -1
    flows, flow = flows[here], trace.flow_id.values[here]
    phase = trace.phase[flows]
    arriving, leaving = phase == ord("f"), phase == ord("s")
    place = places(trace, np.concatenate((activity, flows[arriving])))
    at_activity, at_arrival = place[: len(activity)], place[len(activity) :]
    useful = among(at_arrival, at_activity)
    arrival, arrival_flow, at_arrival = flows[arriving][useful], flow[arriving][useful], at_arrival[useful]
    useful = among(flow[leaving], arrival_flow)
    source, source_flow = sources(trace, flows[leaving][useful], flow[leaving][useful])
    origin = lookup(source_flow, source, arrival_flow)
    linked = origin != UNLINKED
    arrival, origin, at_arrival = arrival[linked], origin[linked], at_arrival[linked]
    order = np.lexsort((arrival, at_arrival))
    return lookup(at_arrival[order], origin[order], at_activity)


def sources(trace: Trace, departure: Rows, flow: Rows) -> tuple[Rows, Rows]:
    """The call that each flow leaves from, and the flow, ascending and distinct; flows from nowhere are left out.

    A flow leaves from the call that starts where and when it does, else from such an operator (the shortest).
    """
    kind = trace.kind
    hosts = np.flatnonzero((kind == Kind.RUNTIME) | (kind == Kind.OPERATOR))
    hosts = hosts[among(trace.ts_ns[hosts], trace.ts_ns[departure])]
    place = places(trace, np.concatenate((departure, hosts)))
    at_departure, at_host = place[: len(departure)], place[len(departure) :]
    called = kind[hosts] == Kind.RUNTIME
    preference = np.where(called, ranks(trace, hosts), trace.dur_ns[hosts])
    order = np.lexsort((hosts, preference, ~called, at_host))
    host = lookup(at_host[order], hosts[order], at_departure)
    left = host != UNLINKED
    departure, flow, host = departure[left], flow[left], host[left]
    order = np.lexsort((departure, trace.ts_ns[departure], flow))
    first = order[firsts(flow[order])]
    return host[first], flow[first]


def by_external_id(trace: Trace, activity: Rows) -> Rows:
    """int64[k]: the k-th launch or copy of an External id for its k-th activity; the first where the counts differ."""
    calls = runtime_rows(trace, trace.args.external_id)
    calls = calls[ranks(trace, calls) == 0]
    call_id = identifiers(trace.args.external_id, calls)
    order = np.lexsort((calls, trace.ts_ns[calls], call_id))
    calls, call_id = calls[order], call_id[order]
    activity_id = identifiers(trace.args.external_id, activity)
    order = np.lexsort((activity, trace.ts_ns[activity], activity_id))
    ordered = activity_id[order]
    first = np.searchsorted(ordered, ordered, side="left")
    count = np.searchsorted(ordered, ordered, side="right") - first
    first_call = np.searchsorted(call_id, ordered, side="left")
    call_count = np.searchsorted(call_id, ordered, side="right") - first_call
    turn = np.where(count == call_count, np.arange(len(ordered)) - first, 0)
    linked = (call_count > 0) & (ordered != 0)
    launch = np.full(len(activity), UNLINKED, np.int64)
    launch[order[linked]] = calls[(first_call + turn)[linked]]
    return launch


def places(trace: Trace, rows: Rows) -> Rows:
    """int64[k]: one number for each distinct (track, start) among the rows."""
    _, instant = numbered(trace.ts_ns[rows])
    return instant * len(trace.tracks) + trace.track[rows]


def lookup(keys: Rows, values: Rows, wanted: Rows) -> Rows:
    """The value of the first of the ascending `keys` that equals each wanted key, -1 where none does."""
    if not len(keys):
        return np.full(len(wanted), UNLINKED, np.int64)
    place = native.places(keys, wanted)
    place[place == len(keys)] = 0
    return np.where(keys[place] == wanted, values[place], UNLINKED)
