"""Several traces broken down: printed as they come, in the order they were given."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

from torchdiag.cli.breakdown_options import Options
from torchdiag.cli.many_traces import outcomes
from torchdiag.report import breakdown_csv, breakdown_json, breakdown_rows
from torchdiag.report.breakdown_table import BreakdownTable
from torchdiag.report.figures import counted
from torchdiag.report.terminal import canvas
from torchdiag.report.waiting import Waiting
from torchdiag.timeline.result import Breakdown

Form = Literal["page", "json", "csv"]


def print_several(paths: Sequence[str], options: Options, form: Form) -> int:
    """Print what became of each file; the exit code: 0, 2 when a file failed, 1 when we did."""
    printer = {"page": _Table, "json": _Json, "csv": _Csv}[form](paths)
    failed = 0
    bugs: list[str] = []
    waiting = Waiting(len(paths), "traces")
    for outcome in outcomes(paths, options, waiting.show):
        waiting.hide()
        if outcome.breakdown is not None:
            printer.breakdown(outcome.path, outcome.breakdown)
        else:
            printer.error(outcome.path, outcome.error)
            failed += 1
            bugs += [outcome.bug] if outcome.bug else []
        # What is known stays printed, whatever comes after: Ctrl-C, or a pipe that closes.
        sys.stdout.flush()
    printer.end()
    for bug in bugs:
        print(bug, file=sys.stderr)
    if failed:
        print(f"torchdiag: {failed} of {counted(len(paths), 'trace')} gave no breakdown", file=sys.stderr)
    return 1 if bugs else 2 if failed else 0


class _Printer(ABC):
    @abstractmethod
    def breakdown(self, path: str, breakdown: Breakdown) -> None: ...

    @abstractmethod
    def error(self, path: str, message: str) -> None: ...

    @abstractmethod
    def end(self) -> None: ...


class _Table(_Printer):
    def __init__(self, paths: Sequence[str]) -> None:
        self._table = BreakdownTable(paths, canvas(sys.stdout))
        self._table.header()

    def breakdown(self, path: str, breakdown: Breakdown) -> None:
        self._table.row(path, breakdown)

    def error(self, path: str, message: str) -> None:
        self._table.error(path, message)

    def end(self) -> None:
        """Every row is printed."""


class _Csv(_Printer):
    def __init__(self, _: Sequence[str]) -> None:
        print(breakdown_csv.header(), end="")

    def breakdown(self, path: str, breakdown: Breakdown) -> None:
        print(breakdown_csv.lines(breakdown_rows.rows(breakdown)), end="")

    def error(self, path: str, message: str) -> None:
        print(breakdown_csv.lines([breakdown_rows.error_row(path, message)]), end="")

    def end(self) -> None:
        """Every line is printed."""


class _Json(_Printer):
    def __init__(self, _: Sequence[str]) -> None:
        self._entries: list[dict[str, Any]] = []

    def breakdown(self, path: str, breakdown: Breakdown) -> None:
        self._entries.append(breakdown_json.body(breakdown))

    def error(self, path: str, message: str) -> None:
        self._entries.append({"path": path, "error": message})

    def end(self) -> None:
        print(breakdown_json.dumps(breakdown_json.several(self._entries)))
