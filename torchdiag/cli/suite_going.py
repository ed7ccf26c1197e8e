"""Running the runs of a suite on the screen: progress while it goes, a table and an exit code when it is over."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from torchdiag.capture.accelerators import Accelerators
    from torchdiag.suite.cases import Case
    from torchdiag.suite.folder import SuiteFolder
    from torchdiag.suite.running import Task

_SHOWN = 5


def go(folder: SuiteFolder, cases: Sequence[Case], accelerators: Accelerators, jobs: int | None) -> None:
    """Run what is not done yet of `cases`, print what came of it, and end with the code that says so."""
    from torchdiag.errors import TorchdiagError  # noqa: PLC0415
    from torchdiag.report.plain_text import plain  # noqa: PLC0415
    from torchdiag.report.terminal import canvas  # noqa: PLC0415
    from torchdiag.suite import progress, summary  # noqa: PLC0415
    from torchdiag.suite.page_terminal import print_page  # noqa: PLC0415
    from torchdiag.suite.running import Runner  # noqa: PLC0415
    from torchdiag.suite.slots import default_jobs  # noqa: PLC0415

    # A scheduler's way of saying that the time is up.
    signal.signal(signal.SIGTERM, _interrupt)
    at_once = jobs or default_jobs(cases, accelerators)
    against = folder.against()
    with folder.held():
        tasks = _left(folder, against, cases)
        total = len(cases) * (1 if against is None else 2)
        with progress.shown(total, len(tasks), at_once) as listener:
            ran = Runner(at_once, accelerators, listener).run(tasks)
    outcomes = folder.outcomes()
    print_page(summary.page(folder, outcomes), canvas(sys.stdout))
    if against is not None:
        outcomes += against.outcomes()
        print(f"\nWith {plain(against.plan.python)}:")
        print_page(summary.page(against, against.outcomes()), canvas(sys.stdout))
    print(f"\nAll of it is in {plain(str(folder.path))}; {plain(_next(folder, against))}")
    sys.stdout.flush()
    if ran.unwritten:
        raise TorchdiagError(f"not everything could be written to {ran.unwritten}")
    if ran.interrupted:
        print("torchdiag: interrupted; what is done is kept, and --resume goes on", file=sys.stderr)
        raise typer.Exit(130)
    failed = [outcome.case.id for outcome in outcomes if outcome.status in ("failed", "partial")]
    if failed:
        others = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        raise TorchdiagError(f"{len(failed)} of {len(outcomes)} runs failed: {', '.join(failed[:_SHOWN])}{others}")


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _left(folder: SuiteFolder, against: SuiteFolder | None, cases: Sequence[Case]) -> list[Task]:
    """What is not done yet. Two sides take turns at going first, so that neither always runs after the other."""
    from torchdiag.suite.running import Task  # noqa: PLC0415

    sides = [folder] if against is None else [folder, against]
    done = {
        (side.path, outcome.case.id)
        for side in sides
        for outcome in side.outcomes()
        if outcome.status in ("complete", "partial", "failed")
    }
    tasks: list[Task] = []
    for case in cases:
        turn = sides if case.process % 2 else sides[::-1]
        tasks += [Task(side, case) for side in turn if (side.path, case.id) not in done]
    return tasks


def _next(folder: SuiteFolder, against: SuiteFolder | None) -> str:
    if against is None:
        return f"torchdiag suite report {folder.path}"
    return f"torchdiag suite compare {folder.path} {against.path}"
