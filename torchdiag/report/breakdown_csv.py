"""The breakdown as comma-separated values: one header, one line a device of a file."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

from torchdiag.report.breakdown_rows import COLUMNS
from torchdiag.report.plain_text import plain

_FORMULA_STARTS = ("=", "+", "-", "@")


def header() -> str:
    """The line of column names, with its line end."""
    return _line(COLUMNS)


def lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """One line a row of `breakdown_rows`. What is None becomes empty."""
    return "".join(_line([_cell(name, row[name]) for name in COLUMNS]) for row in rows)


def _cell(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = plain(value)
    # A spreadsheet runs what starts like a formula. The path is the user's own.
    return f"'{text}" if name != "path" and text.startswith(_FORMULA_STARTS) else text


def _line(cells: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
