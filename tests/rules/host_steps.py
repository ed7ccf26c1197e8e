"""Steps written by hand for the rules about host work: what each holds, given in microseconds from its start."""

from typing import Any

import numpy as np
from reference.reader import Number, trace_of
from written import Event, annotation, call, event, frame, kernel, mark, operator, parsed

from torchdiag.findings.rule import Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts

US = 1_000
STEP_US = 10_000


def facts(*steps: list[Event], more: tuple[Event, ...] = (), marks: bool = True) -> Facts:
    """Steps of 10 ms one after the other, with marks."""
    events = list(more)
    for number, step in enumerate(steps):
        start = number * STEP_US * US
        events += [mark(number, start, STEP_US * US)] if marks else []
        events += [later(item, start, number) for item in step]
    return Facts.of(trace_of(parsed(events), {}))


def later(item: Event, ns: int, number: int) -> Event:
    """The event in step `number`, with correlations of its own there."""
    whole, _, part = str(item["ts"]).partition(".")
    total = int(whole) * 1000 + int(part) + ns
    args = dict(item["args"])
    if args.get("correlation"):
        args["correlation"] += 100_000 * number
    return {**item, "args": args, "ts": Number(f"{total // 1000}.{total % 1000:03}")}


def op(at: float, length: float, name: str, dims: list[Any] | None = None) -> Event:
    """An operator, with the shape of its first argument where it is given."""
    item = operator(round(at * US), round(length * US), name)
    if dims is not None:
        item["args"] = {"Input Dims": [[Number(size) for size in dims]]}
    return item


def py(at: float, length: float, name: str, *, thread: int = 1) -> Event:
    """A Python frame."""
    return frame(round(at * US), round(length * US), name, thread=thread)


def note(at: float, length: float, name: str) -> Event:
    """An annotation."""
    return annotation(round(at * US), round(length * US), name)


def launched(
    at: float, correlation: int, length: float, took: float, name: str, *, kernel_name: str = "k"
) -> list[Event]:
    """An operator of `length` that launches a kernel of `took`, which starts 5 us after."""
    return [
        op(at, length, name),
        call(round(at * US) + 500, round(length * US) - 600, correlation),
        kernel(round((at + length + 5) * US), round(took * US), correlation, name=kernel_name),
    ]


def only(rule: Rule, known: Facts) -> Suspect:
    """The one suspect of a rule, its texts and rows in order."""
    found = list(rule.check(known))
    assert len(found) == 1
    suspect = found[0]
    assert suspect.rows.dtype == np.int64
    assert len(np.unique(suspect.rows)) == len(suspect.rows) > 0
    assert suspect.title.isascii() and suspect.fix.isascii() and suspect.reason.isascii()
    return suspect


def names(known: Facts, rows: np.ndarray) -> set[str]:
    """The names of rows."""
    return {known.trace.names[code] for code in known.trace.name[rows].tolist()}


__all__ = ["STEP_US", "US", "Event", "event", "facts", "launched", "names", "note", "only", "op", "py"]
