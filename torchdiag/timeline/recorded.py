"""What torchdiag recorded beside the profiler and wrote into the trace: exceptions and garbage collections.

Its events (category `torchdiag`, `capture/tracks.py`) lie on tracks of their own and take no part in any other figure:
the time of an exception is time of operators and Python already.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.result import Recorded
from torchdiag.timeline.stacks import Stacks
from torchdiag.trace.columns import NO_TEXT, Texts, Trace
from torchdiag.trace.faults import COMPLETE
from torchdiag.trace.vocabulary import Kind

if TYPE_CHECKING:
    from torchdiag.history.run_result import RecorderResult

Rows = NDArray[np.int64]
RecordedKind = Literal["exception", "throw", "collection", "warning"]

CATEGORY: Final = "torchdiag"
KINDS: Final[dict[str, RecordedKind]] = {
    "Python exceptions": "exception",
    "C++ exceptions": "throw",
    "Garbage collection": "collection",
}
ORDER: Final[tuple[RecordedKind, ...]] = ("exception", "throw", "collection", "warning")
TRACK: Final = re.compile(r"(?P<kind>[^,]+), thread (?P<thread>\d+)")
COLLECTION: Final = "Python GC "
SOON_NS: Final = 1_000_000
"""An operator that begins within this time of a throw, on a thread that is in none, is what was being called."""
MOST_OPERATORS: Final = 3


def in_trace(trace: Trace) -> tuple[Recorded, ...]:
    """What the trace itself holds, over all of its length. Warnings are in it as counters only and are left out."""
    rows, tracks = _rows(trace)
    if not len(rows):
        return ()
    operators = throwing_operators(trace)
    count: Counter[tuple[RecordedKind, str, str, str]] = Counter()
    total: Counter[tuple[RecordedKind, str, str, str]] = Counter()
    raised = _texts(trace, trace.args.raised_at, rows)
    handled = _texts(trace, trace.args.handled_at, rows)
    for row, place, ended in zip(rows.tolist(), raised, handled, strict=True):
        kind = KINDS[tracks[int(trace.track[row])][0]]
        key = (kind, trace.names[int(trace.name[row])].removeprefix(COLLECTION), place, ended)
        count[key] += 1
        total[key] += max(int(trace.dur_ns[row]), 0)
    return ordered(
        Recorded(
            kind, name, place, ended, operators.get(name, "") if kind == "throw" else "", count[key], total[key], 0
        )
        for key in count
        for kind, name, place, ended in [key]
    )


def of_run(result: RecorderResult, operators: dict[str, str]) -> tuple[Recorded, ...]:
    """What the recorders of a run counted; `operators` tells of each type of C++ exception which operators threw it."""
    steps = result.steps
    return ordered(
        [
            *(
                Recorded(
                    "exception", item.type, item.raised_at, item.handled_at or "", "", item.count, item.total_ns, steps
                )
                for item in result.exceptions or ()
            ),
            *(
                Recorded(
                    "throw",
                    item.type,
                    item.symbol or item.library,
                    "",
                    operators.get(item.type, ""),
                    item.count,
                    item.total_ns,
                    steps,
                )
                for item in result.throws or ()
            ),
            *(
                Recorded("collection", f"generation {item.generation}", "", "", "", item.count, item.total_ns, steps)
                for item in result.collections
            ),
            *(
                Recorded("warning", item.category, item.issued_at, "", "", item.count, 0, steps)
                for item in result.warnings
            ),
        ]
    )


def ordered(found: Iterable[Recorded]) -> tuple[Recorded, ...]:
    """By kind; the longest first, then the most frequent, then by name and place."""
    return tuple(
        sorted(
            found,
            key=lambda item: (ORDER.index(item.kind), -item.total_ns, -item.count, item.name, item.place),
        )
    )


def throwing_operators(trace: Trace) -> dict[str, str]:
    """For each type of C++ exception in the trace, the operators that threw it, most frequent first.

    An exception belongs to the innermost operator it was thrown in. Arguments are looked at before the operator that
    they are for begins: what is thrown outside of all belongs to the next operator of its thread, if that is near.
    """
    rows, tracks = _rows(trace)
    throwing = [track for track, (kind, _) in tracks.items() if KINDS[kind] == "throw"]
    rows = rows[np.isin(trace.track[rows], throwing)]
    operators = np.flatnonzero(trace.kind == Kind.OPERATOR)
    if not len(rows) or not len(operators):
        return {}
    threads = zip(trace.tracks.pids, trace.tracks.tids, strict=True)
    by_thread = {(str(pid), str(tid)): number for number, (pid, tid) in enumerate(threads)}
    on: list[int] = trace.track[rows].tolist()
    thread = np.array([by_thread.get((str(trace.tracks.pids[track]), tracks[track][1]), -1) for track in on], np.int32)
    at = trace.ts_ns[rows]
    found = Stacks(trace, operators).innermost(thread, at)
    outside = np.flatnonzero(found < 0)
    found[outside] = _next(trace, operators, thread[outside], at[outside])
    counts: dict[str, Counter[str]] = {}
    told = found >= 0
    for row, operator in zip(rows[told].tolist(), found[told].tolist(), strict=True):
        kind = trace.names[int(trace.name[row])]
        counts.setdefault(kind, Counter())[trace.names[int(trace.name[operator])]] += 1
    return {kind: _listed(names) for kind, names in counts.items()}


def _next(trace: Trace, operators: Rows, thread: NDArray[np.int32], at: NDArray[np.int64]) -> Rows:
    """The operator that begins first on each thread at or after each instant, -1 where none does soon."""
    answer = np.full(len(at), -1, np.int64)
    for number in set(thread.tolist()) - {-1}:
        here = operators[trace.track[operators] == number]
        if not len(here):
            continue
        here = here[np.argsort(trace.ts_ns[here], kind="stable")]
        asked = np.flatnonzero(thread == number)
        place = np.searchsorted(trace.ts_ns[here], at[asked])
        last = np.minimum(place, len(here) - 1)
        near = (place < len(here)) & (trace.ts_ns[here[last]] - at[asked] <= SOON_NS)
        answer[asked] = np.where(near, here[last], -1)
    return answer


def _listed(names: Counter[str]) -> str:
    listed = [name for name, _ in names.most_common(MOST_OPERATORS)]
    more = len(names) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")


def threads(trace: Trace) -> NDArray[np.int32]:
    """int32[tracks]: each track itself, for one of recorded slices that of the thread they happened on (if any)."""
    answer = np.arange(len(trace.tracks), dtype=np.int32)
    _, told = _rows(trace)
    if told:
        pairs = zip(trace.tracks.pids, trace.tracks.tids, strict=True)
        by_thread = {(str(pid), str(tid)): number for number, (pid, tid) in enumerate(pairs)}
        for track, (_, thread) in told.items():
            answer[track] = by_thread.get((str(trace.tracks.pids[track]), thread), track)
    return answer


def rows_of(trace: Trace, wanted: RecordedKind) -> Rows:
    """Rows of the recorded slices of one kind, ascending."""
    rows, told = _rows(trace)
    chosen = [track for track, (kind, _) in told.items() if KINDS[kind] == wanted]
    return rows[np.isin(trace.track[rows], chosen)]


def _rows(trace: Trace) -> tuple[Rows, dict[int, tuple[str, str]]]:
    """Rows of recorded slices, ascending, and of each of their tracks what it holds and of which thread."""
    ours = trace.categories.codes_where(CATEGORY.__eq__)
    if not ours.any():
        return np.empty(0, np.int64), {}
    tracks: dict[int, tuple[str, str]] = {}
    meta = np.flatnonzero(trace.phase == ord("M"))
    labels = trace.args.metadata_name.at(meta, NO_TEXT)
    for row, label in zip(meta[labels != NO_TEXT].tolist(), labels[labels != NO_TEXT].tolist(), strict=True):
        told = TRACK.match(trace.texts[label])
        if told is not None and told["kind"] in KINDS:
            tracks[int(trace.track[row])] = (told["kind"], told["thread"])
    here = (trace.category == int(np.flatnonzero(ours)[0])) & (trace.phase == COMPLETE)
    rows = np.flatnonzero(here & np.isin(trace.track, list(tracks)))
    return rows, tracks


def _texts(trace: Trace, column: Texts, rows: Rows) -> list[str]:
    return [trace.texts[code] if code != NO_TEXT else "" for code in column.at(rows, NO_TEXT).tolist()]
