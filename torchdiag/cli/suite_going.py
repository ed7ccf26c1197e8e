"""Running the runs of a suite on the screen: progress while it goes, a table and an exit code when it is over."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from torchdiag.capture.accelerators import Accelerators
    from torchdiag.suite.cases import Case
    from torchdiag.suite.folder import SuiteFolder

_SHOWN = 5


def go(folder: SuiteFolder, cases: Sequence[Case], accelerators: Accelerators, jobs: int | None) -> None:
    """Run what is not done yet of `cases`, print what came of it, and end with the code that says so."""
    from torchdiag.errors import TorchdiagError  # noqa: PLC0415
    from torchdiag.report.plain_text import plain  # noqa: PLC0415
    from torchdiag.report.terminal import canvas  # noqa: PLC0415
    from torchdiag.suite import progress, summary  # noqa: PLC0415
    from torchdiag.suite.page_terminal import print_page  # noqa: PLC0415
    from torchdiag.suite.running import Runner, Task  # noqa: PLC0415
    from torchdiag.suite.slots import default_jobs  # noqa: PLC0415

    at_once = jobs or default_jobs(cases, accelerators)
    with folder.held():
        done = {outcome.case.id for outcome in folder.outcomes() if outcome.status in ("complete", "partial", "failed")}
        left = [case for case in cases if case.id not in done]
        with progress.shown(len(cases), len(left), at_once) as listener:
            ran = Runner(at_once, accelerators, listener).run([Task(folder, case) for case in left])
    outcomes = folder.outcomes()
    print_page(summary.page(folder, outcomes), canvas(sys.stdout))
    print(f"\nAll of it is in {plain(str(folder.path))}; torchdiag suite report {plain(str(folder.path))}")
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
