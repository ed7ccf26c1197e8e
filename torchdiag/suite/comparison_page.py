"""What `suite compare` says, as a page and as JSON."""

from dataclasses import asdict
from typing import Any

from torchdiag.report.figures import count, counted, size
from torchdiag.suite.comparing import SIGNIFICANCE, Change, Comparison, CountChange, Verdict
from torchdiag.suite.page import Column, Page, left, table


def page(comparison: Comparison, min_effect: float) -> Page:
    """The page."""
    changes = comparison.changes
    told = [change for change in changes if change.verdict is not Verdict.SAME or change.counts]
    counts = {verdict: sum(change.verdict is verdict for change in changes) for verdict in Verdict}
    words = [f"{number} {verdict.value}" for verdict, number in counts.items() if number]
    changed = sum(bool(change.counts) for change in changes)
    words += [f"{counted(changed, 'group')} with other counts"] if changed else []
    answer = f"{counted(len(changes), 'group')} in both: {', '.join(words) or 'nothing to compare'}"
    columns = [
        left("what"),
        left("verdict"),
        Column("B / A"),
        Column("B slower in", spare=True),
        Column("p"),
        Column("processes", spare=True),
        left("note"),
    ]
    rows = [_row(change) for change in (*told, *(change for change in changes if change not in told))]
    tables = [table("Step times", columns, rows, _how(min_effect))]
    exact = [(change.group, *_count_cells(item)) for change in changes for item in change.counts]
    if exact:
        tables.append(
            table("Counts that differ", [left("what"), left("count of a step"), Column("A"), Column("B")], exact)
        )
    return Page(answer, (), tuple(tables), tuple(_notes(comparison)))


def document(comparison: Comparison, min_effect: float) -> dict[str, Any]:
    """The same for programs."""
    return {
        "schema": 1,
        "min_effect": min_effect,
        "significance": SIGNIFICANCE,
        "changes": [{**asdict(change), "regressed": change.regressed} for change in comparison.changes],
        "only_in_a": list(comparison.only_in_a),
        "only_in_b": list(comparison.only_in_b),
        "differences": list(comparison.differences),
    }


def _row(change: Change) -> tuple[str, ...]:
    shift = change.shift
    processes = f"{change.processes[0]} / {change.processes[1]}"
    if shift is None:
        return (change.group, change.verdict.value, "", "", "", processes, change.note)
    note = ""
    if change.verdict is Verdict.UNSURE:
        note = f"so few processes give no p below {shift.least_p:.2g}"
    elif change.verdict in (Verdict.SLOWER, Verdict.FASTER) and not change.interleaved:
        note = "the sides did not take turns"
    return (
        change.group,
        change.verdict.value,
        f"{shift.ratio:.3f}",
        f"{100 * shift.superiority:.0f} %",
        f"{shift.p:.2g}",
        processes,
        note,
    )


def _how(min_effect: float) -> str:
    return (
        f"B / A is the median over all pairs of single steps. p is that of a permutation test: whole processes change "
        f"sides, since steps of one process resemble each other. Slower or faster is said where p is at most "
        f"{SIGNIFICANCE} and the ratio is off by {100 * min_effect:.3g} % or more."
    )


def _count_cells(change: CountChange) -> tuple[str, ...]:
    shown = size if change.name.endswith("bytes") else count

    def cell(values: tuple[int, int]) -> str:
        low, high = values
        exact = count(low) if change.name.endswith("bytes") and shown(values[0]) == shown(high) else shown(low)
        return exact if low == high else f"{shown(low)} to {shown(high)}"

    return change.name.replace("_", " "), cell(change.a), cell(change.b)


def _notes(comparison: Comparison) -> list[str]:
    notes = [f"Not the same in both: {difference}." for difference in comparison.differences]
    timed = [change for change in comparison.changes if change.shift is not None]
    apart = [change for change in timed if not change.interleaved]
    if apart:
        notes.append(
            f"In {counted(len(apart), 'group')} the processes of A and B did not take turns, so what the machine did "
            "meanwhile cannot be told from a change. `suite run SUITE --against PYTHON` runs both in turn."
        )
    sure = [change for change in timed if change.verdict is not Verdict.UNSURE]
    if len(sure) > 1:
        notes.append(
            f"Of {len(sure)} tests, {SIGNIFICANCE * len(sure):.1f} are expected to reach p {SIGNIFICANCE} by chance; "
            "run again what matters."
        )
    if unsure := len(timed) - len(sure):
        notes.append(f"For {counted(unsure, 'group')}, run at least 4 processes on each side (--processes 5).")
    for side, groups in (("A", comparison.only_in_a), ("B", comparison.only_in_b)):
        if groups:
            notes.append(f"Only in {side}: {', '.join(groups)}.")
    return notes
