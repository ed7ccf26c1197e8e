"""How the child hands over what it has: the partial result on disk after every pass, and lines to the parent."""

import json
import os
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from torchdiag.history.profile_options import ProfileOptions
from torchdiag.history.run_result import (
    PARTIAL,
    Environment,
    Failure,
    MemoryResult,
    PassResult,
    RecorderResult,
    RunResult,
    StepSource,
    write,
)

Line = dict[str, Any]
"""`{"say": text}`, `{"mistake": text}` (the user's), `{"bug": traceback}` (ours), `{"passes": "done"}`."""


def version() -> str:
    """The version of torchdiag; empty in a checkout that is not installed."""
    try:
        return metadata.version("torchdiag")
    except metadata.PackageNotFoundError:
        return ""


def bare(options: ProfileOptions, environment: Environment) -> RunResult:
    """A result with nothing measured yet."""
    return RunResult(
        torchdiag=version(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        status="failed",
        options=options,
        environment=environment,
    )


class HandOver:
    """The result so far. Whatever is added is on disk when the call returns; OSError goes through."""

    def __init__(self, options: ProfileOptions, folder: Path, environment: Environment, pipe: int | None) -> None:
        self.folder = folder
        self.result = bare(options, environment)
        self._pipe = pipe
        self._owner = os.getpid()

    def add_pass(
        self, done: PassResult, *, memory: MemoryResult | None = None, recorder: RecorderResult | None = None
    ) -> None:
        """A pass is over."""
        result = self.result
        self._put(
            passes=(*result.passes, done),
            memory=memory or result.memory,
            recorder=recorder or result.recorder,
            status="partial" if done.name in ("timed", "light", "detailed") else result.status,
        )
        median = done.median_ns
        told = "" if median is None else f", {median / 1e6:.4g} ms a step"
        steps = len(done.step_ns)
        self.tell({"say": f"{done.name}: {steps} step{'' if steps == 1 else 's'}{told}"})

    def describe(
        self,
        *,
        environment: Environment | None = None,
        batch_size: int | None = None,
        size: Any = None,
        parameters: int | None = None,
        model_note: str | None = None,
        steps_found_by: StepSource | None = None,
        functions: tuple[str, ...] | None = None,
    ) -> None:
        """What became known about the run."""
        known = {
            "environment": environment,
            "batch_size": batch_size,
            "size": size,
            "parameters": parameters,
            "model_note": model_note,
            "steps_found_by": steps_found_by,
            "functions": functions,
        }
        self._put(**{name: value for name, value in known.items() if value is not None})

    def complete(self) -> None:
        """Every pass was made."""
        self._put(status="complete")
        self.tell({"passes": "done"})

    def fail(self, failure: Failure) -> None:
        """It did not come to its end; the first failure is the one that counts."""
        if self.result.failure is None:
            self._put(failure=failure)

    def tell(self, line: Line) -> None:
        """A line to the parent, which may be gone."""
        if self._pipe is None or os.getpid() != self._owner:
            return
        try:
            os.write(self._pipe, json.dumps(line).encode() + b"\n")
        except OSError:
            self._pipe = None

    def _put(self, **changes: Any) -> None:
        if os.getpid() != self._owner:
            return
        self.result = msgspec.structs.replace(self.result, **changes)
        write(self.result, self.folder / PARTIAL)
