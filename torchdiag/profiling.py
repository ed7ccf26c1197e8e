"""A run from its options to its breakdown: what `torchdiag profile` does, for programs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from torchdiag import api
from torchdiag.api import Breakdown
from torchdiag.capture import parent
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


def profile(options: ProfileOptions, folder: Path, on_event: Callable[[str], None] = lambda _: None) -> Profile:
    """Run a target in a process of its own, measure it, and put everything into the folder, which exists.

    `on_event` is told in words what has been done. What the target does wrong is in the result's `failure`.

    Raises:
        TorchdiagError: a mistake of the user's: no such target or device, a package is missing.
    """
    return finished(parent.run(options, folder, on_event=on_event), folder)


def finished(result: RunResult, folder: Path) -> Profile:
    """Break down what a run recorded and write that into its result."""
    if not any((folder / trace).is_file() for trace in (TRACE, DETAIL)):
        return Profile(folder, result, None)
    try:
        found = api.breakdown(folder)
    except TorchdiagError as error:
        return Profile(folder, result, None, f"The trace could not be broken down: {error}")
    result = msgspec.structs.replace(result, breakdown=found.to_dict())
    try:
        write(result, folder / RESULT)
    except OSError as error:
        return Profile(folder, result, found, f"The breakdown is not in {folder / RESULT}: {error.strerror or error}")
    return Profile(folder, result, found)
