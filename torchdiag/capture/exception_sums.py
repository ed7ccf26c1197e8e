"""Turns a ledger's sums and flights into the records of `exception_records`."""

import threading
from types import CodeType
from typing import Final, cast

from torchdiag.capture.clock import ClockMap
from torchdiag.capture.exception_flights import ESCAPED, RAISED, UNWOUND, Ledger, SumKey, merge
from torchdiag.capture.exception_records import (
    ExceptionSite,
    ExceptionSlice,
    ExceptionSummary,
    Outcome,
    RecorderCost,
    Site,
    StepExceptions,
)
from torchdiag.capture.handler_clause import line_at
from torchdiag.capture.step_marks import StepMarks

# Where a thread of `threading` catches what its target left unhandled, to print it.
_THREAD_END: Final = cast(CodeType, threading.Thread._bootstrap_inner.__code__)  # pyright: ignore

_Place = tuple[str, Site, Site | None, Outcome]


def summarise(
    ledger: Ledger,
    marks: StepMarks,
    *,
    mechanism: str,
    now: int,
    interrupted: bool,
    cost: RecorderCost,
    clock: ClockMap,
) -> ExceptionSummary:
    """The summary of a ledger whose flights are all closed. `now` ends a step still in progress, ns."""
    places = _Places(ledger)
    per_step: dict[int, dict[_Place, list[int]]] = {}
    totals: dict[_Place, list[int]] = {}
    untracked: dict[int, int] = {}
    for thread in ledger.threads:
        for key, sums in thread.sums.items():
            place = places.of(key)
            merge(per_step.setdefault(key[0], {}), place, sums)
            merge(totals, place, sums)
        for step, count in thread.untracked.items():
            untracked[step] = untracked.get(step, 0) + count
    steps = [
        StepExceptions(index, *marks.bounds(index, now), _sites(per_step.get(index, {})), untracked.get(index, 0))
        for index in marks.listed(marks.index in per_step or marks.index in untracked)
    ]
    slices = [
        ExceptionSlice(start, end, thread_id, ledger.keys[index][0], *places.of(ledger.keys[index]))
        for start, end, thread_id, index in sorted(ledger.slices, key=lambda numbers: (numbers[0], -numbers[1]))
    ]
    return ExceptionSummary(
        mechanism=mechanism,
        steps=tuple(steps),
        sites=_sites(totals),
        slices=tuple(slices),
        dropped_slices=sum(thread.dropped_slices for thread in ledger.threads),
        untracked=sum(untracked.values()),
        interrupted=interrupted,
        cost=cost,
        clock=clock,
    )


class _Places:
    """Names the places of a ledger's keys."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[SumKey, _Place] = {}

    def of(self, key: SumKey) -> _Place:
        """Type, raise site, handler site, outcome."""
        anywhen = (0, *key[1:])
        place = self._known.get(anywhen)
        if place is None:
            place = self._known[anywhen] = self._name(key)
        return place

    def _name(self, key: SumKey) -> _Place:
        _, kind_id, raise_code, raise_offset, end_code, end_offset, state = key
        codes, kind = self._ledger.codes, self._ledger.kinds[kind_id]
        raised_at = _site(codes[raise_code], line_at(codes[raise_code], raise_offset))
        end = codes.get(end_code)
        if state == ESCAPED or (state == UNWOUND and end is None) or (state != RAISED and end is _THREAD_END):
            return _type_name(kind), raised_at, None, Outcome.UNHANDLED
        if end is None or state == RAISED:
            return _type_name(kind), raised_at, None, Outcome.IN_FLIGHT
        if state == UNWOUND:
            return _type_name(kind), raised_at, _site(end, line_at(end, end_offset)), Outcome.LEFT_TO_C
        line = self._ledger.clauses.get((end_code, end_offset, kind_id)) or line_at(end, end_offset)
        return _type_name(kind), raised_at, _site(end, line), Outcome.HANDLED


def _site(code: CodeType, line: int) -> Site:
    return Site(code.co_filename, line, code.co_qualname)


def _type_name(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _sites(sums: dict[_Place, list[int]]) -> tuple[ExceptionSite, ...]:
    sites = [ExceptionSite(*place, *numbers[:4]) for place, numbers in sums.items()]
    return tuple(sorted(sites, key=lambda site: (-site.total_ns, str(site))))
