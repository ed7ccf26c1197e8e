"""What a report of a suite says, before anyone decides how it looks: tables with words around them.

The terminal, Markdown and HTML all draw these values. Every text is safe to show.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from torchdiag.report.plain_text import plain


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `right` for figures. A narrow terminal goes without the `spare` ones, the last first."""

    name: str
    right: bool = True
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table under a title; `note` says how its figures are meant."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report: its first line, some facts, tables, and what is to be said besides."""

    answer: str
    facts: tuple[str, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()


def table(title: str, columns: Iterable[Column], rows: Iterable[Iterable[str]], note: str = "") -> Table:
    """A table whose texts are made safe."""
    made = tuple(tuple(plain(cell) for cell in row) for row in rows)
    return Table(title, tuple(columns), made, note)


def left(name: str, *, spare: bool = False) -> Column:
    """A column of words."""
    return Column(name, right=False, spare=spare)


def percent(part: int | float | None, whole: int | float | None = 1) -> str:
    """A share to a tenth of a percent; empty where it is not known."""
    if part is None or not whole:
        return ""
    return f"{100 * part / whole:.1f} %"
