"""The table of what was recorded beside the profiler, on a terminal."""

from rich.cells import cell_len
from rich.text import Text

from torchdiag.report.recorded_page import TITLE, RecordedPage
from torchdiag.report.terminal import Canvas, pad

_GAP = "  "
_LONGEST_LABEL = 100


def print_recorded(page: RecordedPage, canvas: Canvas) -> None:
    """Print the table under its title."""
    canvas.line(canvas.text(TITLE, "bold"))
    often_width = max(len(cell) for cell in (page.often, *(row.often for row in page.rows)))
    times = [canvas.spell(row.time) for row in page.rows]
    time_width = max(len(cell) for cell in (page.time, *times))
    labels = [canvas.spell("  " * row.depth + row.label) for row in page.rows]
    room = canvas.width - often_width - time_width - 2 * len(_GAP)
    width = min(max(map(cell_len, labels)) + 2, room, _LONGEST_LABEL)
    heading = (pad("", width), pad(page.often, often_width, right=True), pad(page.time, time_width, right=True))
    canvas.line(Text(_GAP.join(heading), "dim"))
    for row, label, time in zip(page.rows, labels, times, strict=True):
        figures = _GAP + pad(row.often, often_width, right=True) + _GAP + pad(time, time_width, right=True)
        indent = "  " * row.depth
        for number, wrapped in enumerate(Text(label.strip()).wrap(canvas.console, max(width - len(indent) - 2, 10))):
            wrapped.rstrip()
            # Continued lines stand a little further in.
            start = indent if not number else indent + "  "
            name = pad(canvas.fit(start + wrapped.plain, width), width)
            canvas.line(Text(name, "" if row.depth else "bold"), Text("" if number else figures))
