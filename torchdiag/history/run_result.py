"""The result of a run, `result.json` of its folder: the schema, and reading and writing it.

Durations are integer nanoseconds, sizes bytes, unless a name says otherwise. Readers ignore what they do not know, so
adding a field leaves `SCHEMA` as it is; renaming or redefining one raises it.
"""

import os
import secrets
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from torchdiag.errors import TorchdiagError
from torchdiag.history.profile_options import ProfileOptions

SCHEMA: Final = 1
RESULT: Final = "result.json"
PARTIAL: Final = "partial.json"
OUTPUT: Final = "output.log"
TRACE: Final = "trace.json.gz"
DETAIL: Final = "detail.json.gz"

PassName = Literal["warm-up", "timed", "light", "detailed", "exceptions"]
StepSource = Literal["model", "function", "optimizer", "dataloader", "step()", "time"]
FailureKind = Literal[
    "exception",
    "exit",
    "killed",
    "out-of-memory",
    "timeout",
    "interrupted",
    "no-steps",
    "few-steps",
    "disk",
    "profiler",
]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run is not complete.

    `message` is whole sentences for the user; `exit_code` and `signal` (a name such as SIGKILL) tell how the process
    ended where that matters; `traceback` is the target's own, without this tool's frames; `output_tail` are the last
    lines the target printed.
    """

    kind: FailureKind
    message: str
    exit_code: int | None = None
    signal: str | None = None
    traceback: str = ""
    output_tail: str = ""


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU at the start of the run. Clocks in MHz; `other_processes` are those of others on it, `pid name bytes`."""

    index: int
    name: str
    memory_bytes: int
    compute_capability: str = ""
    multiprocessors: int | None = None
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    power_limit_w: float | None = None
    temperature_c: int | None = None
    other_processes: tuple[str, ...] | None = None


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The machine and the software of a run; None or an empty text where it could not be found out."""

    python: str
    platform: str
    torch: str = ""
    packages: dict[str, str] = {}
    cuda: str | None = None
    hip: str | None = None
    cudnn: int | None = None
    driver: str | None = None
    device: str = ""
    gpus: tuple[Gpu, ...] = ()
    cpu: str = ""
    cpu_count: int | None = None
    usable_cpus: int | None = None
    memory_bytes: int | None = None
    threads: int | None = None
    interop_threads: int | None = None
    thread_variables: dict[str, str] = {}
    matmul_precision: str = ""
    matmul_tf32: bool | None = None
    cudnn_tf32: bool | None = None
    cudnn_benchmark: bool | None = None
    cudnn_deterministic: bool | None = None
    deterministic_algorithms: bool | None = None
    anomaly_mode: bool | None = None
    git_commit: str | None = None
    git_changed: bool | None = None


class PassResult(msgspec.Struct, frozen=True, kw_only=True):
    """One pass over some steps.

    `step_ns` are wall-clock times of single steps, in order; `device_step_ns` the same between device events, on a GPU.
    `started_ns` is wall clock time since the Unix epoch. `trace` is a file in the folder; `recorded` of the steps are
    in it. `note` says what was not as asked for.
    """

    name: PassName
    step_ns: tuple[int, ...]
    device_step_ns: tuple[int, ...] | None = None
    started_ns: int = 0
    trace: str | None = None
    recorded: int = 0
    note: str = ""

    @property
    def samples_ns(self) -> tuple[int, ...]:
        """The step times to quote: between device events where there are any, the wall clock's otherwise."""
        return self.device_step_ns or self.step_ns

    @property
    def median_ns(self) -> int | None:
        """The median of `samples_ns` (of an even number the lower middle's and the upper middle's mean)."""
        ordered = sorted(self.samples_ns)
        if not ordered:
            return None
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) // 2


class MemoryResult(msgspec.Struct, frozen=True, kw_only=True):
    """Peaks of the process up to the end of the timed pass, and on a GPU those of the timed pass alone."""

    peak_rss_bytes: int | None = None
    gpu_peak_allocated_bytes: int | None = None
    gpu_peak_reserved_bytes: int | None = None
    gpu_allocation_retries: int | None = None


class ExceptionPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Python exceptions of one type, one raise site and one handler site (`file:line:function`), over the pass."""

    type: str
    raised_at: str
    handled_at: str | None
    outcome: str
    count: int
    total_ns: int
    max_ns: int


class ThrowPlace(msgspec.Struct, frozen=True, kw_only=True):
    """C++ exceptions of one type out of one function of one library; `total_ns` from throw to catch of the `caught`."""

    type: str
    library: str
    symbol: str
    count: int
    caught: int
    total_ns: int


class CollectionSum(msgspec.Struct, frozen=True, kw_only=True):
    """Python's garbage collections of one generation."""

    generation: int
    count: int
    total_ns: int
    longest_ns: int
    collected: int


class WarningPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Warnings of one category issued at one place; `shown` of them passed the filters."""

    category: str
    issued_at: str
    count: int
    shown: int


class RecorderResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the profiler cannot see, from the exceptions pass; each `..._per_step` has one number for each of its steps.

    `throws` is None where the probe of C++ exceptions was not there (`throws_missing` says why), `exceptions` is None
    where no recording was possible (`exceptions_missing`). `exception_cost_ns` is added by the recorder to each
    exception, `call_cost_ns` to each call of a Python function; both are measured in the run.
    """

    steps: int
    mechanism: str
    exceptions: tuple[ExceptionPlace, ...] | None
    exceptions_per_step: tuple[int, ...]
    exceptions_missing: str = ""
    untracked: int = 0
    interrupted: bool = False
    throws: tuple[ThrowPlace, ...] | None = None
    throws_per_step: tuple[int, ...] = ()
    throws_missing: str = ""
    throws_dropped: int = 0
    collections: tuple[CollectionSum, ...] = ()
    collections_per_step: tuple[int, ...] = ()
    warnings: tuple[WarningPlace, ...] = ()
    warnings_per_step: tuple[int, ...] = ()
    exception_cost_ns: float | None = None
    call_cost_ns: float | None = None


class TunePoint(msgspec.Struct, frozen=True, kw_only=True):
    """One batch size that was tried: its median step, or why there is none."""

    batch_size: int
    step_ns: int | None = None
    samples_per_s: float | None = None
    gpu_peak_allocated_bytes: int | None = None
    failure: Failure | None = None


class TuneResult(msgspec.Struct, frozen=True, kw_only=True):
    """The curve of `--batch-size tune`: `chosen` is the smallest batch within 1 % of the best throughput."""

    points: tuple[TunePoint, ...]
    chosen: int | None
    stopped_because: str


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """A run: `complete` (every pass was made), `partial` (some, the timed one or a trace among them) or `failed`.

    `breakdown` is added after the run, in the form of `torchdiag breakdown --json`. `functions` are the public
    functions of torch that Python called in a step; None where they were not asked for. `model_note` is what a reader
    must know about a model of the suite, such as that it is a rebuild of another library's.
    """

    torchdiag: str
    created: str
    status: Literal["complete", "partial", "failed"]
    options: ProfileOptions
    environment: Environment
    schema: int = SCHEMA
    failure: Failure | None = None
    batch_size: int | None = None
    size: Literal["real", "tiny"] | None = None
    parameters: int | None = None
    model_note: str = ""
    steps_found_by: StepSource | None = None
    passes: tuple[PassResult, ...] = ()
    memory: MemoryResult | None = None
    recorder: RecorderResult | None = None
    tune: TuneResult | None = None
    breakdown: dict[str, Any] | None = None
    functions: tuple[str, ...] | None = None

    def find(self, name: PassName) -> PassResult | None:
        """The pass of that name, if it was made."""
        return next((item for item in self.passes if item.name == name), None)

    def inflation(self, name: PassName) -> float | None:
        """Median step of a pass over that of the timed one; None where either is missing."""
        other, timed = self.find(name), self.find("timed")
        if other is None or timed is None or other.median_ns is None or not timed.median_ns:
            return None
        return other.median_ns / timed.median_ns

    @property
    def samples_per_s(self) -> float | None:
        """Throughput of the timed pass, where the batch size is known."""
        timed = self.find("timed")
        if timed is None or self.batch_size is None or not timed.median_ns:
            return None
        return self.batch_size * 1e9 / timed.median_ns


def write(result: RunResult, path: Path) -> None:
    """Write it so that the file is there whole or as it was before. Raises OSError where that is impossible."""
    write_whole(path, msgspec.json.format(msgspec.json.encode(result), indent=1))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all. Raises OSError."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read(path: Path) -> RunResult:
    """Read a result, or the one in a folder.

    Raises:
        TorchdiagError: there is none, it is no result, or a newer torchdiag wrote it.
    """
    file = path / RESULT if path.is_dir() else path
    try:
        content = file.read_bytes()
    except OSError as error:
        raise TorchdiagError(f"cannot read {file}: {error.strerror or error}") from error
    try:
        schema = msgspec.json.decode(content, type=_Header).schema
        if schema > SCHEMA:
            raise TorchdiagError(f"{file} was written by a newer torchdiag (schema {schema}): upgrade torchdiag.")
        return msgspec.json.decode(content, type=RunResult)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TorchdiagError(f"{file} is not the result of a run: {error}") from error


class _Header(msgspec.Struct):
    schema: int
