"""The breakdown on a terminal: the answer first, then what it rests on."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from torchdiag.report.breakdown_page import ELSEWHERE, Account, Line, Page, compose, numbers
from torchdiag.report.figures import duration, percent
from torchdiag.report.recorded_terminal import print_recorded
from torchdiag.report.steps_page import StepsPage
from torchdiag.report.terminal import STYLES, Canvas, bar, pad
from torchdiag.timeline.result import Breakdown

_NAME_WIDTH = 16
_LEAST_STEP = 12
_LONGEST_LABEL = 100
_DROPPED_FIRST = ("copied", "copies", "launches", "syncs")
"""Columns of the step table that a narrow terminal goes without."""
_MINI_BAR = 24
_WIDE = 110
_SEVERAL_LINES = 6
_GAP = "  "
_TITLE = "where the time went"
_PLACES = "the longest places"
_COUNTS = "stretches"


def print_breakdown(breakdown: Breakdown, canvas: Canvas) -> None:
    """Print the page of one trace."""
    page = compose(breakdown)
    canvas.paragraph(page.answer, "bold")
    canvas.line()
    _facts(page, canvas)
    several = len(page.accounts) > 1
    for account in page.accounts:
        canvas.line()
        _account(account, canvas, compact=several)
    if page.recorded is not None:
        canvas.line()
        print_recorded(page.recorded, canvas)
    if page.steps is not None:
        canvas.line()
        _steps(page.steps, canvas)
    if page.notes:
        canvas.line()
        canvas.line(Text("About this trace", "bold"))
        for note in page.notes:
            canvas.paragraph(note, first="- ", rest="  ")


def _facts(page: Page, canvas: Canvas) -> None:
    path, *others = page.facts
    tail = "".join(f" · {fact}" for fact in others)
    if cell_len(canvas.spell(path + tail)) <= canvas.width:
        canvas.line(canvas.text(path + tail, "dim"))
    else:
        canvas.line(canvas.text(canvas.fit(path, canvas.width), "dim"))
        canvas.paragraph(" · ".join(others), "dim")


def _account(account: Account, canvas: Canvas, *, compact: bool) -> None:
    canvas.line(Text(canvas.fit(account.title, canvas.width), "bold"))
    canvas.line(bar(canvas, [(part.tone, part.nanoseconds) for part in account.parts], canvas.width))
    _legend(account, canvas)
    lines = _compact(account.lines) if compact else account.lines
    if lines:
        canvas.line()
        _lines(lines, canvas, _TITLE)
    if account.remark:
        canvas.paragraph(account.remark)
    if account.places:
        canvas.line()
        _lines(account.places, canvas, _PLACES)


def _compact(lines: Sequence[Line]) -> list[Line]:
    """The costliest causes with the first place of each."""
    kept: list[Line] = []
    previous = -1
    for line in lines:
        if len(kept) == _SEVERAL_LINES:
            break
        if line.depth == 1 or (line.depth == 2 and previous == 1):
            kept.append(line)
        previous = line.depth
    return kept


def _legend(account: Account, canvas: Canvas) -> None:
    """The parts of the bar named, in as many columns as fit."""
    name_width = max(len(part.label) for part in account.parts)
    entries: list[Text] = []
    for part in account.parts:
        share = percent(part.tenths, something=part.nanoseconds > 0)
        figures = f" {pad(part.label, name_width)} {share:>7} {duration(part.nanoseconds):>8}"
        entries.append(Text.assemble((canvas.fills[part.tone], STYLES[part.tone]), canvas.spell(figures)))
    gap = "    "
    columns = max((canvas.width + len(gap)) // (entries[0].cell_len + len(gap)), 1)
    columns = min(columns, len(entries))
    # Four parts in three columns would leave one alone.
    if columns == len(entries) - 1:
        columns = (len(entries) + 1) // 2
    rows = -(-len(entries) // columns)
    for row in range(rows):
        canvas.line(Text(gap).join(entries[row::rows]))


def _lines(lines: Sequence[Line], canvas: Canvas, title: str) -> None:
    shares = [percent(line.tenths, something=line.nanoseconds > 0) for line in lines]
    times = [canvas.spell(duration(line.nanoseconds)) for line in lines]
    counts = [numbers(line) for line in lines]
    count_width = max(map(len, [*counts, _COUNTS])) if any(counts) else 0
    fixed = len(_GAP) + 7 + len(_GAP) + 8 + (len(_GAP) + count_width if count_width else 0)
    graphic = _MINI_BAR if canvas.width >= _WIDE else 0
    room = canvas.width - fixed - (len(_GAP) + graphic if graphic else 0)
    meanings_fit = _NAME_WIDTH + len(_GAP) + max(cell_len(line.meaning) for line in lines) <= room
    labels = [canvas.spell(_label(line, meaning=meanings_fit)) for line in lines]
    label_width = min(max(map(cell_len, [*labels, title])), room, _LONGEST_LABEL)
    heading = [pad(title, label_width), "  share", "    time", _COUNTS if count_width else ""]
    canvas.line(Text(_GAP.join(heading), "dim"))
    for line, label, share, time, count in zip(lines, labels, shares, times, counts, strict=True):
        figures = f"{_GAP}{share:>7}{_GAP}{pad(time, 8, right=True)}"
        figures += f"{_GAP}{count:>{count_width}}" if count_width else ""
        faint = not line.nanoseconds or line.label == ELSEWHERE
        name = Text(pad(canvas.fit(label, label_width), label_width))
        if line.depth < 2:
            name.stylize("bold", 0, _NAME_WIDTH if line.meaning else None)
        pieces = [name, Text(figures)]
        if faint:
            pieces = [Text(piece.plain, "dim") for piece in pieces]
        if graphic:
            pieces += [Text(_GAP), _mini_bar(line, canvas)]
        canvas.line(*pieces)


def _label(line: Line, *, meaning: bool) -> str:
    name = "  " * line.depth + line.label
    if not (meaning and line.meaning):
        return name
    return f"{pad(name, _NAME_WIDTH)}{_GAP}{line.meaning}"


def _mini_bar(line: Line, canvas: Canvas) -> Text:
    cells = round(line.tenths * _MINI_BAR / 1000)
    return Text(canvas.fills[line.tone] * cells, STYLES[line.tone])


def _steps(steps: StepsPage, canvas: Canvas) -> None:
    canvas.paragraph(steps.title, "bold", rest="  ")
    table = [[canvas.spell(cell) for cell in row.cells] for row in steps.rows]
    full = [list(steps.header), *(row for row in table if row)]
    widths = [max(cell_len(row[column]) for row in full) for column in range(len(steps.header))]
    for column in [steps.header.index(name) for name in _DROPPED_FIRST if name in steps.header]:
        room = canvas.width - 2 - sum(width + len(_GAP) for width in widths[1:] if width)
        if room < min(widths[0], _LEAST_STEP):
            widths[column] = 0
    room = canvas.width - 2 - sum(width + len(_GAP) for width in widths[1:] if width)
    widths[0] = max(min(widths[0], room), 1)
    canvas.line(Text("  " + _row(steps.header, widths), "dim"))
    for row, cells in zip(steps.rows, table, strict=True):
        if not cells:
            canvas.line(canvas.text(f"  … {row.left_out}", "dim"))
            continue
        cells[0] = canvas.fit(cells[0], widths[0])
        text = ("* " if row.note else "  ") + _row(cells, widths)
        note = canvas.spell(row.note)
        style = "yellow" if row.note else ""
        if note and cell_len(text) + 2 + cell_len(note) <= canvas.width:
            canvas.line(Text(f"{text}  {note}", style))
        else:
            canvas.line(Text(text, style))
            if note:
                canvas.paragraph(note, style, first="    ", rest="    ")


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    (name, *figures), (name_width, *figure_widths) = cells, widths
    padded = [pad(figure, width, right=True) for figure, width in zip(figures, figure_widths, strict=True) if width]
    return _GAP.join([pad(name, name_width), *padded])
