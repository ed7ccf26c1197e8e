"""A report of a suite on a terminal."""

from rich.cells import cell_len
from rich.text import Text

from torchdiag.report.terminal import Canvas, pad
from torchdiag.suite.page import Page, Table

_GAP = "  "
_LEAST_WORDS = 12
_LEAST_WRAPPED = 24


def print_page(page: Page, canvas: Canvas) -> None:
    """Print a whole report."""
    if page.answer:
        canvas.paragraph(page.answer, "bold")
    if page.facts:
        canvas.paragraph(" · ".join(page.facts), "dim")
    for table in page.tables:
        canvas.line()
        print_table(table, canvas)
    if page.notes:
        canvas.line()
        for note in page.notes:
            canvas.paragraph(note, first="- ", rest="  ")


def print_table(table: Table, canvas: Canvas) -> None:
    """Print a table in the width there is: columns that can be spared go first, then words are shortened."""
    if table.title:
        canvas.paragraph(table.title, "bold")
    rows = [[canvas.spell(cell) for cell in row] for row in table.rows]
    widths = [
        max([cell_len(column.name), *(cell_len(row[place]) for row in rows)])
        for place, column in enumerate(table.columns)
    ]
    for place in range(len(widths) - 1, -1, -1):
        # A column with nothing in it tells nothing.
        if not any(row[place] for row in rows) and place:
            widths[place] = 0
    _fit(table, widths, canvas.width)
    names = [column.name for column in table.columns]
    canvas.line(Text(_GAP.join(_cells(table, names, widths, canvas)), "dim"))
    for row in rows:
        _print_row(table, row, widths, canvas)
    if table.note:
        canvas.paragraph(table.note, "dim")


def _print_row(table: Table, row: list[str], widths: list[int], canvas: Canvas) -> None:
    """Print a row; where its last column is one of words, these are wrapped in it."""
    cells = _cells(table, row, widths, canvas)
    if table.columns[-1].right or not widths[-1] or cell_len(row[-1]) <= widths[-1]:
        canvas.line(Text(_GAP.join(cells)))
        return
    before = _GAP.join(cells[:-1])
    indent = " " * cell_len(before)
    for number, line in enumerate(Text(row[-1]).wrap(canvas.console, widths[-1])):
        line.rstrip()
        canvas.line(Text(f"{indent if number else before}{_GAP}{line.plain}"))


def _fit(table: Table, widths: list[int], room: int) -> None:
    def excess() -> int:
        shown = [width for width in widths if width]
        return sum(shown) + len(_GAP) * (len(shown) - 1) - room

    # What is the same in every row tells least.
    spare = [place for place, column in enumerate(table.columns) if column.spare][::-1]
    for place in spare:
        if excess() > 0 and len(table.rows) > 1 and len({row[place] for row in table.rows}) == 1:
            widths[place] = 0
    # The last column's words are wrapped and give way first; those of the others are shortened.
    words = [place for place, column in enumerate(table.columns) if not column.right][::-1]
    least = {place: _LEAST_WRAPPED if place == len(widths) - 1 else _LEAST_WORDS for place in words}
    for place in spare:
        if excess() <= sum(max(widths[word] - least[word], 0) for word in words):
            break
        widths[place] = 0
    for word in words:
        widths[word] = max(widths[word] - max(excess(), 0), min(widths[word], least[word]))


def _cells(table: Table, cells: list[str], widths: list[int], canvas: Canvas) -> list[str]:
    return [
        pad(canvas.fit(cell, width), width, right=column.right)
        for cell, width, column in zip(cells, widths, table.columns, strict=True)
        if width
    ]
