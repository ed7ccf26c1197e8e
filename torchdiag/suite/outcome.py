"""What came of one run of a suite: how it ended, and its figures; `outcome.json` in the run's folder."""

from pathlib import Path
from typing import Final, Literal

import msgspec

from torchdiag.errors import TorchdiagError
from torchdiag.history.run_result import write_whole
from torchdiag.suite.cases import Case

SCHEMA: Final = 1
OUTCOME: Final = "outcome.json"

Status = Literal["complete", "partial", "failed", "skipped", "interrupted"]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of a diagnosis: its rule, its verdict, and the share (0..1) of a step that mending it would gain."""

    rule: str
    verdict: str
    gain_share: float | None = None
    title: str = ""


class DeviceTime(msgspec.Struct, frozen=True, kw_only=True):
    """Nanoseconds of the recorded steps, over all devices; the last four sum to the window."""

    window_ns: int
    active_ns: int
    transfer_ns: int
    python_ns: int
    idle_ns: int


class HostTime(msgspec.Struct, frozen=True, kw_only=True):
    """Nanoseconds of the recorded steps on the main thread, where no device was recorded; they sum to the window."""

    window_ns: int
    operator_ns: int
    runtime_ns: int
    python_ns: int
    dataloader_ns: int
    uncovered_ns: int


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """What can be counted exactly, one number a recorded step; exceptions are those of their own pass."""

    kernels: tuple[int, ...] = ()
    launches: tuple[int, ...] = ()
    copies: tuple[int, ...] = ()
    copied_bytes: tuple[int, ...] = ()
    syncs: tuple[int, ...] = ()
    operators: tuple[int, ...] = ()
    exceptions: tuple[int, ...] = ()
    throws: tuple[int, ...] = ()


COUNTERS: Final = Counters.__struct_fields__


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of a run.

    `device` is None where no device activity was recorded, then `host` tells where time went. `environment_ns` is the
    part of the recorded steps in which the environment of a reinforcement learning model ran, of `steps_ns` in all.
    `operators` are the ATen operators of the trace and how often each was called, `functions` the public functions of
    torch that a step called, None where that was not recorded.
    """

    device_name: str
    torch: str
    batch_size: int | None = None
    size: str | None = None
    parameters: int | None = None
    model_note: str = ""
    step_ns: int | None = None
    samples_ns: tuple[int, ...] = ()
    samples_per_s: float | None = None
    peak_rss_bytes: int | None = None
    gpu_peak_allocated_bytes: int | None = None
    gpu_peak_reserved_bytes: int | None = None
    device: DeviceTime | None = None
    host: HostTime | None = None
    steps_ns: int = 0
    environment_ns: int | None = None
    counters: Counters = Counters()
    operators: dict[str, int] = {}
    functions: tuple[str, ...] | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    `kind` and `message` say why it is not complete: the kinds of a run's failure, and `package`, `unknown-model`,
    `mistake` and `torchdiag` (an error of this tool's own). `problem` is what went wrong after the run itself.
    `began` is in UTC; `wall_s` is all the time it took, building and recording included.
    """

    case: Case
    status: Status
    began: str
    schema: int = SCHEMA
    kind: str = ""
    message: str = ""
    problem: str = ""
    wall_s: float = 0.0
    jobs: int = 1
    figures: Figures | None = None
    findings: tuple[Found, ...] | None = None
    tuned_batch: int | None = None

    @property
    def measured(self) -> bool:
        """Whether it has a step time."""
        return self.figures is not None and self.figures.step_ns is not None


def write(outcome: Outcome, folder: Path) -> None:
    """Write it into the run's folder, which is made. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / OUTCOME, msgspec.json.encode(outcome))


def read(folder: Path) -> Outcome | None:
    """The outcome in a run's folder; None where there is none, as after a kill.

    Raises:
        TorchdiagError: it is damaged, or of a newer torchdiag.
    """
    file = folder / OUTCOME
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TorchdiagError(f"cannot read {file}: {error.strerror or error}") from error
    try:
        if msgspec.json.decode(content, type=_Header).schema > SCHEMA:
            raise TorchdiagError(f"{file} was written by a newer torchdiag: upgrade torchdiag.")
        return msgspec.json.decode(content, type=Outcome)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TorchdiagError(f"{file} is not the outcome of a run: {error}") from error


class _Header(msgspec.Struct):
    schema: int
