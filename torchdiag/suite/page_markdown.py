"""A report of a suite as Markdown."""

from torchdiag.suite.page import Page, Table


def to_markdown(page: Page) -> str:
    """The report as GitHub's dialect has it."""
    parts = [f"# {_escaped(page.answer)}"] if page.answer else []
    if page.facts:
        parts.append(_escaped(" · ".join(page.facts)))
    parts += [_table(table) for table in page.tables]
    if page.notes:
        parts.append("\n".join(f"- {_escaped(note)}" for note in page.notes))
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> str:
    lines = [f"## {_escaped(table.title)}", ""] if table.title else []
    lines.append(_row([column.name for column in table.columns]))
    lines.append("|" + "|".join(" ---: " if column.right else " --- " for column in table.columns) + "|")
    lines += [_row(row) for row in table.rows]
    if table.note:
        lines += ["", _escaped(table.note)]
    return "\n".join(lines)


def _row(cells: "tuple[str, ...] | list[str]") -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    """No text of a run's makes a link, an image, a tag or another cell."""
    for character in "\\`*_|<>[]#":
        text = text.replace(character, f"\\{character}" if character not in "<>" else f"&{'lg'[character == '>']}t;")
    return text
