"""The folder of a suite's run on disk: what was planned, a folder for each run, and the table of all.

docs/suites.md describes the files. What a run came to is in its own folder and nowhere else, so a kill at any moment
loses no more than what was running.
"""

import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from torchdiag.capture.hand_over import version
from torchdiag.errors import TorchdiagError
from torchdiag.history.run_folder import RUNS
from torchdiag.history.run_result import write_whole
from torchdiag.suite import outcome as outcomes
from torchdiag.suite.cases import Case
from torchdiag.suite.outcome import Outcome
from torchdiag.suite.parquet import to_parquet
from torchdiag.suite.rows import COLUMNS, row

SCHEMA: Final = 1
PLAN: Final = "suite.json"
TABLE: Final = "results.parquet"
EACH: Final = "runs"
AGAINST: Final = "against"
"""The folder, in that of a suite's run, of what another Python ran in turn with it."""

_LOCK: Final = ".lock"
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._]+")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for when the folder was made; `python` runs the targets, empty for the one of the command."""

    torchdiag: str
    created: str
    suite: str
    description: str
    cases: tuple[Case, ...]
    schema: int = SCHEMA
    python: str = ""


class SuiteFolder:
    """A folder that holds a suite's run."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        self.plan = plan

    def of(self, case: Case) -> Path:
        """The folder of one run."""
        return self.path / EACH / case.id

    def against(self) -> "SuiteFolder | None":
        """What another Python runs in turn with this, if one does."""
        inner = self.path / AGAINST
        return read(inner) if is_suite_run(inner) else None

    def outcomes(self) -> list[Outcome]:
        """What there is so far, in the order of the plan."""
        found = (outcomes.read(self.of(case)) for case in self.plan.cases)
        return [outcome for outcome in found if outcome is not None]

    def write_table(self, done: Sequence[Outcome]) -> None:
        """Write the table of all that is done. Raises OSError."""
        write_whole(self.path / TABLE, to_parquet(COLUMNS, [row(outcome) for outcome in done]))

    @contextmanager
    def held(self) -> Generator[None]:
        """Nobody else runs anything in this folder meanwhile.

        Raises:
            TorchdiagError: somebody does.
        """
        try:
            import fcntl  # noqa: PLC0415 - Windows has none, and goes without
        except ImportError:
            yield
            return
        with (self.path / _LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise TorchdiagError(f"another torchdiag is running a suite in {self.path}") from error
            yield


def make(out: str | None, suite: str, description: str, cases: Sequence[Case], python: str = "") -> SuiteFolder:
    """Make a new folder: `out`, or one of that suite and the time in `torchdiag-runs`.

    Raises:
        TorchdiagError: it is there already and not empty, or cannot be made.
    """
    now = datetime.now(UTC)
    path = Path(out) if out is not None else Path(RUNS) / f"{_start(suite)}{now.strftime('%Y%m%d-%H%M%S')}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        taken = next(path.iterdir(), None) is not None
    except OSError as error:
        raise TorchdiagError(f"cannot make the folder {path}: {error.strerror or error}") from error
    if taken:
        what = "holds a suite's run: go on with --resume" if is_suite_run(path) else "is not empty"
        raise TorchdiagError(f"{path} {what}; or name a new folder with --out")
    plan = Plan(
        torchdiag=version(),
        created=now.isoformat(timespec="seconds"),
        suite=suite,
        description=description,
        cases=tuple(cases),
        python=python,
    )
    try:
        write_whole(path / PLAN, msgspec.json.encode(plan))
    except OSError as error:
        raise TorchdiagError(f"cannot write to {path}: {error.strerror or error}") from error
    return SuiteFolder(path, plan)


def is_suite_run(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of a suite's run."""
    return (Path(path) / PLAN).is_file()


def read(path: str | os.PathLike[str]) -> SuiteFolder:
    """The run of a suite in a folder.

    Raises:
        TorchdiagError: there is none in it, or a newer torchdiag wrote it.
    """
    file = Path(path) / PLAN
    try:
        content = file.read_bytes()
    except OSError as error:
        reason = "it has no suite.json" if Path(path).is_dir() else error.strerror or str(error)
        raise TorchdiagError(f"{path} is not the folder of a suite's run: {reason}") from error
    try:
        plan = msgspec.json.decode(content, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TorchdiagError(f"{file} is not the plan of a suite's run: {error}") from error
    if plan.schema > SCHEMA:
        raise TorchdiagError(f"{file} was written by a newer torchdiag: upgrade torchdiag.")
    return SuiteFolder(Path(path), plan)


def latest(suite: str) -> Path:
    """The newest run of a suite in `torchdiag-runs`.

    Raises:
        TorchdiagError: there is none.
    """
    made = re.compile(re.escape(_start(suite)) + r"\d{8}-\d{6}\Z")
    found = [path for path in Path(RUNS).glob(f"{_start(suite)}*") if made.match(path.name) and is_suite_run(path)]
    if not found:
        raise TorchdiagError(f"there is no run of the suite {suite} in {RUNS} to resume; name its folder with --out")
    return max(found, key=lambda path: path.name)


def _start(suite: str) -> str:
    return f"suite-{_UNFIT.sub('_', suite)}-"
