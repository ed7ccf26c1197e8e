"""The folder of a run on disk: where it is made, what is in it, and how it is found again.

docs/run-folder.md describes the files. A folder is a run's when `result.json` is in it, or `partial.json`, which a
run leaves behind whose end was not awaited.
"""

import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from torchdiag.errors import TorchdiagError
from torchdiag.history import run_result
from torchdiag.history.profile_options import ProfileOptions
from torchdiag.history.run_result import DETAIL, OUTPUT, PARTIAL, RESULT, TRACE, RunResult

RUNS: Final = "torchdiag-runs"
"""The folder, in the current one, that runs are put into unless told otherwise."""

_UNFIT: Final = re.compile(r"[^A-Za-z0-9._]+")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run on disk: `trace` and `detail` are None where the run did not come to record them."""

    path: Path
    result: RunResult
    trace: Path | None
    detail: Path | None

    @property
    def output(self) -> Path:
        """What the target printed."""
        return self.path / OUTPUT


def is_run(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of a run."""
    folder = Path(path)
    return (folder / RESULT).is_file() or (folder / PARTIAL).is_file()


def read(path: str | os.PathLike[str]) -> RunFolder:
    """Read the run in a folder.

    Raises:
        TorchdiagError: it is no folder, or no run's, or a newer torchdiag wrote it.
    """
    folder = Path(path)
    if not folder.is_dir():
        reason = "is a file, not the folder of a run" if folder.exists() else "does not exist"
        raise TorchdiagError(f"{path} {reason}")
    if not is_run(folder):
        inside = [str(run) for run in sorted(folder.iterdir()) if is_run(run)] if os.access(folder, os.R_OK) else []
        hint = f"; the latest run in it is {inside[-1]}" if inside else f": it has no {RESULT}"
        raise TorchdiagError(f"{path} is not the folder of a run{hint}")
    file = folder / RESULT
    result = run_result.read(file if file.is_file() else folder / PARTIAL)
    return RunFolder(folder, result, _existing(folder / TRACE), _existing(folder / DETAIL))


def trace_of(path: str | os.PathLike[str]) -> str:
    """The file that holds the trace a path stands for: a run's light recording, else the path itself.

    Raises:
        TorchdiagError: the path is a run's that recorded no trace, or a folder that is no run's.
    """
    if not Path(path).is_dir():
        return os.fspath(path)
    run = read(path)
    found = run.trace or run.detail
    if found is None:
        failure = run.result.failure
        why = f": {failure.message}" if failure is not None else ""
        raise TorchdiagError(f"the run in {path} recorded no trace{why}")
    return str(found)


def make(out: str | None, options: ProfileOptions, now: datetime) -> Path:
    """Make the folder of a new run: `out`, or `torchdiag-runs/NAME-MODE-TIME`. Nothing is ever overwritten.

    Raises:
        TorchdiagError: it is there already and not empty, or cannot be made.
    """
    folder = Path(out) if out is not None else Path(RUNS) / _name(options, now)
    number = 2
    while out is None and folder.exists():
        folder = Path(RUNS) / f"{_name(options, now)}-{number}"
        number += 1
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = next(folder.iterdir(), None) is not None
    except OSError as error:
        hint = "" if out is not None else "; name another place with --out"
        raise TorchdiagError(f"cannot make the folder {folder}: {error.strerror or error}{hint}") from error
    if taken:
        what = "holds a run already" if is_run(folder) else "is not empty"
        raise TorchdiagError(f"{folder} {what}, and nothing is overwritten: name a new folder with --out")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TorchdiagError(f"cannot write into the folder {folder}: permission denied; name another with --out")
    return folder


def discard_empty(folder: Path) -> None:
    """Remove a folder that `make` made and nothing came of: with nothing in it but an empty output, if that."""
    output = folder / OUTPUT
    try:
        if output.is_file() and not output.stat().st_size:
            output.unlink()
        folder.rmdir()
        if folder.parent == Path(RUNS):
            folder.parent.rmdir()
    except OSError:
        return


def _name(options: ProfileOptions, now: datetime) -> str:
    """`resnet18-train-20250131-120000`; what is no model has no mode."""
    target = options.target
    if options.target_kind == "script":
        target = Path(target).stem
    parts = [_UNFIT.sub("_", target).strip("_.") or "run"]
    if options.target_kind == "model":
        parts.append(options.mode)
    return "-".join([*parts, now.strftime("%Y%m%d-%H%M%S")])


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None
