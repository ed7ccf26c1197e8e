"""The step table: one row a step, long tables shortened in the middle, unusual steps kept in sight."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from torchdiag.report.figures import count, counted, duration, size
from torchdiag.report.plain_text import plain
from torchdiag.timeline.result import Breakdown, Step
from torchdiag.timeline.step_groups import median

_HEADER = ("step", "time", "busy", "kernels", "launches", "syncs", "copies", "copied")
_HOST_HEADER = ("step", "time", "launches", "syncs")

_MOST_ROWS = 14
_FIRST_ROWS = 6
_LAST_ROWS = 3
_MOST_ODD_ROWS = 6


@dataclass(frozen=True, slots=True)
class StepRow:
    """One row: a step's cells in the order of the header, with its note; or, without cells, what was left out."""

    cells: tuple[str, ...]
    note: str
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class StepsPage:
    """The step table under a title."""

    title: str
    header: tuple[str, ...]
    rows: tuple[StepRow, ...]


def steps_page(breakdown: Breakdown) -> StepsPage | None:
    """The table of a breakdown's steps; None when it has none."""
    steps = breakdown.steps
    if not steps:
        return None
    found = " found in the order of the kernels" if breakdown.steps_source == "period" else ""
    title = f"{counted(len(steps), 'step')}{found}{_usual_step(steps)}"
    header = _HEADER if breakdown.devices else _HOST_HEADER
    return StepsPage(title, header, tuple(_rows(steps, header)))


def _usual_step(steps: Sequence[Step]) -> str:
    """Medians of the largest group of steps that look alike: what to compare before and after a change."""
    group, members = Counter(step.group for step in steps).most_common(1)[0]
    alike = [step for step in steps if step.group == group]
    if members < 2:
        return ""
    figures = [duration(round(median(step.end_ns - step.start_ns for step in alike)))]
    busy = [step.gpu_busy for step in alike if step.gpu_busy is not None]
    if busy:
        figures.append(f"GPU busy {100 * median(busy):.1f} %")
        figures.append(counted(round(median(step.kernels for step in alike)), "kernel"))
        figures.append(counted(round(median(step.syncs for step in alike)), "sync"))
    which = "all alike" if members == len(steps) else f"{members} alike"
    return f", {which}: {', '.join(figures)}"


def _rows(steps: Sequence[Step], header: Sequence[str]) -> list[StepRow]:
    shown = _shown(steps)
    rows: list[StepRow] = []
    previous = -1
    for index in [*shown, len(steps)]:
        hidden = index - previous - 1
        if hidden:
            rows.append(StepRow((), "", f"{counted(hidden, 'more step')} (--json has all)"))
        if index < len(steps):
            rows.append(_row(steps[index], header))
        previous = index
    return rows


def _shown(steps: Sequence[Step]) -> list[int]:
    if len(steps) <= _MOST_ROWS:
        return list(range(len(steps)))
    ends = {*range(_FIRST_ROWS), *range(len(steps) - _LAST_ROWS, len(steps))}
    odd = [index for index, step in enumerate(steps) if step.note and index not in ends]
    return sorted(ends | set(odd[:_MOST_ODD_ROWS]))


def _row(step: Step, header: Sequence[str]) -> StepRow:
    cells = {
        "step": plain(step.name),
        "time": duration(step.end_ns - step.start_ns),
        "busy": "" if step.gpu_busy is None else f"{100 * step.gpu_busy:.1f} %",
        "kernels": count(step.kernels),
        "launches": count(step.launches),
        "syncs": count(step.syncs),
        "copies": count(step.copies),
        "copied": size(step.copied_bytes),
    }
    return StepRow(tuple(cells[name] for name in header), plain(step.note))
