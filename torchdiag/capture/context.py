"""Measuring from inside a program: the passes of `torchdiag profile`, driven by the program's own calls of `step()`."""

from __future__ import annotations

import contextlib
import os
import threading
import traceback
import warnings
from collections.abc import Callable, Generator
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from torchdiag.capture import device as devices
from torchdiag.capture import environment
from torchdiag.capture.failures import of_exception
from torchdiag.capture.hand_over import HandOver
from torchdiag.capture.passes import Passes
from torchdiag.capture.run_target import passes_of
from torchdiag.errors import TorchdiagError
from torchdiag.history import run_folder
from torchdiag.history.profile_options import ProfileOptions
from torchdiag.history.run_result import PARTIAL, RESULT, Failure, RunResult, write

_RANKS: Final = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")


class Recording:
    """Measures the steps between `step()` calls inside its `with` block, and writes a run's folder.

    The passes follow one another: steps that are left out, steps without a profiler, recorded lightly, recorded with
    stacks, watched for exceptions. When the last one is over `done` is true, and `step()` does nothing more. Of several
    ranks the first alone is measured; `folder` and `result` are None on the others. Neither the measuring nor its
    errors change what the program does: an exception of the program goes through, and where the disk is full the
    measuring ends with a warning.
    """

    def __init__(
        self,
        out: str | os.PathLike[str] | None,
        options: ProfileOptions,
        *,
        complete: Callable[[RunResult, Path], RunResult] = lambda result, _: result,
    ) -> None:
        """`complete` adds to the result what is found out in the traces once all are there."""
        self._out = None if out is None else os.fspath(out)
        self._options = options
        self._complete = complete
        self._owner = (0, 0)
        self._hand_over: HandOver | None = None
        self._passes: Passes | None = None
        self.folder: Path | None = None
        self.result: RunResult | None = None

    @property
    def done(self) -> bool:
        """Whether everything is measured: a loop that runs for the measurement alone may end."""
        return self._passes is None or self._passes.done

    def __enter__(self) -> Self:
        """Make the folder; the first step begins.

        Raises:
            TorchdiagError: the folder is there already, or cannot be written to; torch is missing.
        """
        if _rank() != 0:
            return self
        if find_spec("torch") is None:
            raise TorchdiagError("torch is not installed here: run `pip install torch`.")
        self.folder = run_folder.make(self._out, self._options, datetime.now())
        self._owner = (os.getpid(), threading.get_ident())
        self._hand_over = HandOver(self._options, self.folder, environment.without_torch(Path.cwd()), None)
        self._passes = Passes(passes_of(self._options), self._hand_over, devices.in_use)
        with self._failing_alone():
            self._hand_over.describe(steps_found_by="step()")
            self._passes.begin()
        return self

    def step(self) -> None:
        """A step is over, the next one begins. Does nothing once everything is measured."""
        passes = self._passes
        if passes is None or self._owner != (os.getpid(), threading.get_ident()):
            return
        with self._failing_alone():
            if not passes.done:
                passes.border()
                if passes.done and self._hand_over is not None:
                    self._hand_over.complete()
                    self._write()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hand_over, passes = self._hand_over, self._passes
        if hand_over is None or self._owner[0] != os.getpid() or self.result is not None:
            return
        with self._failing_alone():
            if passes is not None and not passes.done:
                borders = passes.borders
                passes.abandon()
                hand_over.fail(_why_too_few(borders, error))
            self._passes = None
            self._write()

    def _write(self) -> None:
        """Put the result in place of the partial one."""
        if self._hand_over is None or self.folder is None:
            return
        result = self._complete(self._hand_over.result, self.folder)
        write(result, self.folder / RESULT)
        (self.folder / PARTIAL).unlink(missing_ok=True)
        self.result = result

    @contextlib.contextmanager
    def _failing_alone(self) -> Generator[None]:
        """Whatever goes wrong in here ends the measuring, with a warning, and not the program."""
        try:
            yield
        except Exception as error:
            passes, self._passes = self._passes, None
            with contextlib.suppress(Exception):
                if passes is not None:
                    passes.abandon()
            message = f"{type(error).__name__}: {error}"
            if self._hand_over is not None:
                failure = Failure(kind="disk" if isinstance(error, OSError) else "profiler", message=message)
                self.result = msgspec.structs.replace(self._hand_over.result, failure=failure)
            warnings.warn(f"torchdiag measures no more: {message}", RuntimeWarning, stacklevel=4)


def _why_too_few(steps: int, error: BaseException | None) -> Failure:
    if isinstance(error, KeyboardInterrupt):
        return Failure(kind="interrupted", message="Interrupted.")
    if error is not None:
        return of_exception(error, "".join(traceback.format_exception(error)))
    taken = f"{steps} step{'' if steps == 1 else 's'}"
    if not steps:
        return Failure(kind="no-steps", message="The block ended without a call of `step()` at the end of a step.")
    return Failure(
        kind="few-steps",
        message=f"The block ended after {taken}, too few for all passes: let it run longer, or ask for fewer with "
        "`warmup=1, steps=5`.",
    )


def _rank() -> int:
    """The rank of this process, 0 where there is one only."""
    return next((int(os.environ[name]) for name in _RANKS if os.environ.get(name, "").isdigit()), 0)
