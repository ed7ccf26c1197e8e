"""What is said about things recorded beside the profiler, before anyone decides how it looks. Every text is safe."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from torchdiag.report.figures import count, duration
from torchdiag.report.plain_text import plain
from torchdiag.timeline.frames import LINE, Frame
from torchdiag.timeline.result import Recorded

TITLE: Final = "Beside the times above, and no part of them"
_NAMES: Final = {
    "exception": "Python exceptions",
    "throw": "C++ exceptions",
    "collection": "garbage collections",
    "warning": "warnings",
}
_MOST_PLACES: Final = 4


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """A kind (depth 0) or a place (depth 1): how often in a step, and for how long; empty where that means nothing."""

    depth: int
    label: str
    often: str
    time: str


@dataclass(frozen=True, slots=True)
class RecordedPage:
    """The table: `often` and `time` are the names of its columns."""

    often: str
    time: str
    rows: tuple[RecordedRow, ...]


def recorded_page(recorded: Sequence[Recorded]) -> RecordedPage | None:
    """The table of what was recorded; None where nothing was."""
    if not recorded:
        return None
    steps = recorded[0].steps
    rows: list[RecordedRow] = []
    for kind, name in _NAMES.items():
        items = [item for item in recorded if item.kind == kind]
        if not items:
            continue
        rows.append(_row(0, name, sum(item.count for item in items), sum(item.total_ns for item in items), steps))
        rows += [_row(1, label(item), item.count, item.total_ns, steps) for item in items[:_MOST_PLACES]]
        rest = items[_MOST_PLACES:]
        if rest:
            more = f"{len(rest)} more place{'s' if len(rest) > 1 else ''}"
            rows.append(_row(1, more, sum(item.count for item in rest), sum(item.total_ns for item in rest), steps))
    return RecordedPage("a step" if steps else "times", "time a step" if steps else "time", tuple(rows))


def label(item: Recorded) -> str:
    """`KeyError at train.py:12 step, handled at line 14`; `c10::Error thrown by aten::mm`."""
    text = item.name
    if item.kind == "throw":
        text += f" thrown by {item.operator}" if item.operator else f" in {_library(item.place)}" if item.place else ""
        return plain(text)
    if item.kind == "collection":
        return plain(text)
    raised = _frame(item.place)
    if raised is None:
        return plain(text)
    text += f" at {raised.label}"
    handled = _frame(item.handled_at)
    if handled is not None:
        same = (handled.file, handled.function) == (raised.file, raised.function)
        text += f", handled at {f'line {handled.line}' if same else handled.label}"
    return plain(text)


def often(number: int, steps: int) -> str:
    """How many a step, or how many in all where the steps are not known: `3`, `0.33`."""
    if not steps or number % steps == 0:
        return count(number // max(steps, 1))
    return f"{number / steps:.2g}" if number < 10 * steps else f"{number / steps:,.0f}"


def _row(depth: int, name: str, number: int, total_ns: int, steps: int) -> RecordedRow:
    time = duration(round(total_ns / max(steps, 1))) if total_ns else ""
    return RecordedRow(depth, name, often(number, steps), time)


def _frame(site: str) -> Frame | None:
    file, _, rest = site.rpartition(":")
    function = rest
    file, _, line = file.rpartition(":")
    if not file or not LINE.fullmatch(line):
        return None
    return Frame(file, int(line), function or "")


def _library(place: str) -> str:
    return place.rpartition("/")[2] if place.startswith("/") else place
