"""A run from its options to its breakdown: what `torchdiag profile` does, and `torchdiag.profile()` in a program."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from torchdiag import api
from torchdiag.api import Breakdown
from torchdiag.capture import parent
from torchdiag.capture.context import Recording
from torchdiag.errors import TorchdiagError
from torchdiag.history.profile_options import ProfileOptions
from torchdiag.history.run_result import DETAIL, RESULT, TRACE, RunResult, write


@dataclass(frozen=True, slots=True)
class Profile:
    """A run and its breakdown, None where it recorded no trace; `problem` says what failed after the run itself."""

    folder: Path
    result: RunResult
    breakdown: Breakdown | None
    problem: str = ""


def run(options: ProfileOptions, folder: Path, on_event: Callable[[str], None] = lambda _: None) -> Profile:
    """Run a target in a process of its own, measure it, and put everything into the folder, which exists.

    `on_event` is told in words what has been done. What the target does wrong is in the result's `failure`.

    Raises:
        TorchdiagError: a mistake of the user's: no such target or device, a package is missing.
    """
    result = parent.run(options, folder, on_event=on_event)
    result, found, problem = _broken_down(result, folder)
    if found is not None:
        try:
            write(result, folder / RESULT)
        except OSError as error:
            problem = f"The breakdown is not in {folder / RESULT}: {error.strerror or error}"
    return Profile(folder, result, found, problem)


def profile(
    out: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    warmup: int | None = None,
    steps: int | None = None,
    stack: bool = True,
    memory: bool = False,
    exceptions: bool = True,
) -> Recording:
    """Measure steps of the program that calls this.

        with torchdiag.profile("run") as p:
            for batch in loader:
                train(batch)
                p.step()

    `out` is the folder of the run, which must not be there yet; without it, one in `torchdiag-runs` named after `name`
    (the program's own, if None). `warmup` steps are left out (else, until they take the same time), `steps` are timed
    without a profiler (else, 20 of them); then some are recorded, with the options of `torchdiag profile`.
    `torchdiag breakdown` reads the folder.
    """
    options = ProfileOptions(
        target=name or Path(sys.argv[0]).name or "python",
        target_kind="script",
        script_args=tuple(sys.argv[1:]) if name is None else (),
        skip=warmup,
        steps=steps,
        stack=stack,
        memory=memory,
        exceptions=exceptions,
    )
    return Recording(out, options, complete=lambda result, folder: _broken_down(result, folder)[0])


def _broken_down(result: RunResult, folder: Path) -> tuple[RunResult, Breakdown | None, str]:
    """The result with the breakdown of what was recorded in the folder, that breakdown, and why there is none."""
    if not any((folder / trace).is_file() for trace in (TRACE, DETAIL)):
        return result, None, ""
    try:
        found = api.breakdown(folder)
    except TorchdiagError as error:
        return result, None, f"The trace could not be broken down: {error}"
    return msgspec.structs.replace(result, breakdown=found.to_dict()), found, ""
