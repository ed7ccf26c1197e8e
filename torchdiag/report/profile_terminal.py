"""The result of `torchdiag profile` on a terminal: what was run and how fast, its breakdown, and how to go on."""

from pathlib import Path

from rich.text import Text

from torchdiag.findings.finding import Diagnosis
from torchdiag.history.run_result import RunResult, TuneResult
from torchdiag.report import profile_words
from torchdiag.report.breakdown_terminal import print_breakdown
from torchdiag.report.diagnosis_terminal import print_top
from torchdiag.report.figures import count, duration, size
from torchdiag.report.plain_text import plain
from torchdiag.report.profile_words import Figure
from torchdiag.report.terminal import Canvas, pad
from torchdiag.timeline.result import Breakdown

_GAP = "  "
_LEAST_REMARK = 30


def print_profile(
    result: RunResult, breakdown: Breakdown | None, diagnosis: Diagnosis | None, folder: Path, canvas: Canvas
) -> None:
    """Print the page of a run whose folder is `folder`; it has no breakdown and no diagnosis without a trace."""
    canvas.paragraph(profile_words.title(result), "bold", rest="  ")
    _figures(profile_words.figures(result), canvas)
    for note in profile_words.notes(result):
        canvas.paragraph(note, "dim")
    if result.tune is not None:
        canvas.line()
        _tune(result.tune, canvas)
    if breakdown is not None:
        canvas.line()
        print_breakdown(breakdown, canvas)
        canvas.line()
        if diagnosis is not None:
            print_top(diagnosis, canvas)
            canvas.line()
        # Not wrapped, so that it can be copied.
        canvas.line(canvas.text(profile_words.how_to_open(folder), "bold"))


def _figures(figures: list[Figure], canvas: Canvas) -> None:
    if not figures:
        return
    spelled = [canvas.spell(figure.figure) for figure in figures]
    name_width = max(len(figure.name) for figure in figures)
    figure_width = max(map(len, spelled))
    indent = " " * (name_width + figure_width + 2 * len(_GAP))
    narrow = canvas.width - len(indent) < _LEAST_REMARK
    for figure, value in zip(figures, spelled, strict=True):
        head = f"{pad(figure.name, name_width)}{_GAP}{pad(value, figure_width, right=True)}"
        if narrow:
            canvas.line(Text(head))
            canvas.paragraph(figure.remark, "dim", first="    ", rest="    ")
        else:
            canvas.paragraph(figure.remark, first=head + _GAP, rest=indent)


def _tune(tune: TuneResult, canvas: Canvas) -> None:
    """The curve: a line a batch size, the fastest has the longest bar."""
    fastest = max((point.samples_per_s or 0.0 for point in tune.points), default=0.0)
    canvas.line(canvas.text(f"batch sizes: {plain(tune.stopped_because)}", "bold"))
    for point in tune.points:
        mark = "*" if point.batch_size == tune.chosen else " "
        start = f"{mark} {count(point.batch_size):>7}"
        if point.samples_per_s is None or point.step_ns is None:
            why = point.failure.message if point.failure is not None else "not measured"
            canvas.line(Text(canvas.fit(f"{start}  {plain(why)}", canvas.width), "red"))
            continue
        text = f"{start}  {canvas.spell(duration(point.step_ns)):>8}  {point.samples_per_s:>10,.1f} samples/s"
        if point.gpu_peak_allocated_bytes is not None:
            text += f"  {size(point.gpu_peak_allocated_bytes):>8}"
        room = max(canvas.width - len(text) - len(_GAP), 0)
        cells = round(min(room, 30) * point.samples_per_s / fastest) if fastest else 0
        canvas.line(Text(text + _GAP), Text(canvas.fills["active"] * cells, "green"))
