"""The runs of a suite as comma-separated values: one header, one line a run."""

import csv
import io
from collections.abc import Sequence
from typing import Any, Final

from torchdiag.report.plain_text import plain
from torchdiag.suite.outcome import Outcome
from torchdiag.suite.rows import COLUMNS, row

_FORMULA_STARTS: Final = ("=", "+", "-", "@")


def to_csv(outcomes: Sequence[Outcome]) -> str:
    """The table; what is None is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for outcome in outcomes:
        cells = row(outcome)
        writer.writerow([_cell(cells[name]) for name in COLUMNS])
    return text.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = plain(value)
    # A spreadsheet runs what starts like a formula.
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
