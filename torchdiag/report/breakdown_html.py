"""The breakdown in a notebook: one small HTML fragment that needs nothing from outside.

Every text goes through `html.escape`; colours are inline, and patterns and labels say the same without them.
"""

from collections.abc import Sequence
from html import escape

from torchdiag.report.breakdown_page import Account, Line, Part, compose, numbers
from torchdiag.report.figures import duration, percent
from torchdiag.report.plain_text import shorten
from torchdiag.report.recorded_page import TITLE, RecordedPage
from torchdiag.report.steps_page import StepRow, StepsPage
from torchdiag.timeline.result import Breakdown

# Okabe and Ito's colours, told apart by colour-blind readers; the stripes tell them apart on a grey printer.
_FILLS = {
    "active": "background:#009e73",
    "transfer": "background:repeating-linear-gradient(90deg,#56b4e9 0 3px,#2f7fb5 3px 6px)",
    "python": "background:repeating-linear-gradient(45deg,#e69f00 0 5px,#f5c451 5px 10px)",
    "idle": "background:repeating-linear-gradient(135deg,#d55e00 0 2px,#f0b48c 2px 7px)",
    "loader": "background:repeating-linear-gradient(0deg,#cc79a7 0 3px,#8f4f74 3px 6px)",
}
_LONGEST_LABEL = 90
_STYLE = """<style>
.torchdiag{font:13px/1.45 system-ui,sans-serif;max-width:960px;color:inherit}
.torchdiag p{margin:.3em 0}
.torchdiag .td-answer{font-size:1.15em;font-weight:600}
.torchdiag .td-faint{opacity:.65}
.torchdiag h4{margin:1em 0 .3em;font-size:1em}
.torchdiag .td-bar{display:flex;height:26px;border:1px solid rgba(128,128,128,.6);border-radius:3px;overflow:hidden}
.torchdiag .td-bar i{display:block;min-width:2px;border-right:1px solid rgba(255,255,255,.8);box-sizing:border-box}
.torchdiag .td-legend span{display:inline-block;margin:.35em 1.6em 0 0;white-space:nowrap}
.torchdiag .td-legend i{display:inline-block;width:14px;height:14px;margin-right:.4em;vertical-align:-2px;
border:1px solid rgba(128,128,128,.6);box-sizing:border-box}
.torchdiag table{border-collapse:collapse;margin:.4em 0;color:inherit;font-size:1em}
.torchdiag th,.torchdiag td{text-align:right;padding:.15em .8em;border:0;background:none;white-space:nowrap;
font-variant-numeric:tabular-nums}
.torchdiag th{font-weight:400;opacity:.65;border-bottom:1px solid rgba(128,128,128,.5)}
.torchdiag th:first-child,.torchdiag td:first-child,.torchdiag .td-left{text-align:left;white-space:normal;
overflow-wrap:anywhere}
.torchdiag .td-meaning{text-align:left;font-weight:400;opacity:.65}
.torchdiag .td-0{font-weight:600}
.torchdiag .td-1 td:first-child{padding-left:1.8em}
.torchdiag .td-2 td:first-child{padding-left:3.2em;font-family:ui-monospace,monospace;font-size:.95em}
.torchdiag .td-odd{background:rgba(230,159,0,.16)}
</style>"""


def to_html(breakdown: Breakdown) -> str:
    """An HTML fragment in a `div` of class `torchdiag`."""
    page = compose(breakdown)
    pieces = [
        _STYLE,
        '<div class="torchdiag">',
        f'<p class="td-answer">{escape(page.answer)}</p>',
        f'<p class="td-faint">{escape(" · ".join(page.facts))}</p>',
        *(_account(account) for account in page.accounts),
    ]
    if page.recorded is not None:
        pieces.append(_recorded(page.recorded))
    if page.steps is not None:
        pieces.append(_steps(page.steps))
    if page.notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in page.notes)
        pieces.append(f"<h4>About this trace</h4><ul>{items}</ul>")
    pieces.append("</div>")
    return "".join(pieces)


def _account(account: Account) -> str:
    title = escape(account.title)
    described = escape(", ".join(_part(part) for part in account.parts))
    segments = "".join(
        f'<i style="flex:{part.nanoseconds} 0 0;{_FILLS[part.tone]}" title="{escape(_part(part))}"></i>'
        for part in account.parts
        if part.nanoseconds
    )
    legend = "".join(f'<span><i style="{_FILLS[part.tone]}"></i>{escape(_part(part))}</span>' for part in account.parts)
    remark = f"<p>{escape(account.remark)}</p>" if account.remark else ""
    places = _table("the longest places", account.places) if account.places else ""
    return (
        f'<h4>{title}</h4><div class="td-bar" role="img" aria-label="{described}">{segments}</div>'
        f'<div class="td-legend">{legend}</div>'
        f"{_table('where the time went', account.lines)}{remark}{places}"
    )


def _table(title: str, lines: Sequence[Line]) -> str:
    rows = "".join(_line(line) for line in lines)
    return (
        f'<table><tr><th>{title}</th><th class="td-left"></th><th>share</th><th>time</th>'
        f"<th>stretches</th></tr>{rows}</table>"
    )


def _part(part: Part) -> str:
    return f"{part.label} {percent(part.tenths, something=part.nanoseconds > 0)}, {duration(part.nanoseconds)}"


def _line(line: Line) -> str:
    faint = "" if line.nanoseconds else " td-faint"
    label = shorten(line.label, _LONGEST_LABEL)
    return (
        f'<tr class="td-{line.depth}{faint}"><td title="{escape(line.label)}">{escape(label)}</td>'
        f'<td class="td-meaning">{escape(line.meaning)}</td>'
        f"<td>{escape(percent(line.tenths, something=line.nanoseconds > 0))}</td>"
        f"<td>{escape(duration(line.nanoseconds))}</td><td>{escape(numbers(line))}</td></tr>"
    )


def _recorded(page: RecordedPage) -> str:
    rows = "".join(
        f'<tr class="td-{row.depth}"><td>{escape(row.label)}</td><td>{escape(row.often)}</td>'
        f"<td>{escape(row.time)}</td></tr>"
        for row in page.rows
    )
    return f"<h4>{TITLE}</h4><table><tr><th></th><th>{page.often}</th><th>{page.time}</th></tr>{rows}</table>"


def _steps(steps: StepsPage) -> str:
    header = "".join(f"<th>{escape(name)}</th>" for name in steps.header)
    rows = "".join(_step(row, len(steps.header) + 1) for row in steps.rows)
    return f'<h4>{escape(steps.title)}</h4><table><tr>{header}<th class="td-left"></th></tr>{rows}</table>'


def _step(row: StepRow, columns: int) -> str:
    if row.left_out:
        return f'<tr><td class="td-faint" colspan="{columns}">… {escape(row.left_out)}</td></tr>'
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in row.cells)
    odd = ' class="td-odd"' if row.note else ""
    return f'<tr{odd}>{cells}<td class="td-left">{escape(row.note)}</td></tr>'
