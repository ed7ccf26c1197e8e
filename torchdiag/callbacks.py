"""`torchdiag.profile()` for trainers that drive the steps themselves: transformers and Lightning.

    trainer = Trainer(..., callbacks=[torchdiag.callbacks.for_transformers("run")])
    trainer = L.Trainer(..., callbacks=[torchdiag.callbacks.for_lightning("run")])

Neither library is imported before its function is called. The options are those of `torchdiag.profile`.
"""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false, reportUnknownArgumentType=false
# These libraries need not be here, and leave parts of their own signatures untyped.

import os
from importlib import import_module
from typing import Any

from torchdiag.capture.context import Recording
from torchdiag.errors import TorchdiagError
from torchdiag.profiling import profile


class _Watch:
    """A recording that is begun and ended by somebody's events."""

    def __init__(self, out: str | os.PathLike[str] | None, options: dict[str, Any]) -> None:
        self._out = out
        self._options = options
        self._recording: Recording | None = None

    def begin(self) -> None:
        """Training begins. A trainer that trains again is measured once."""
        if self._recording is None:
            self._recording = profile(self._out, **self._options).__enter__()

    def step(self) -> None:
        """A step is over."""
        if self._recording is not None:
            self._recording.step()

    def end(self, error: BaseException | None = None) -> None:
        """Training is over, or failed."""
        if self._recording is not None:
            self._recording.__exit__(None if error is None else type(error), error, None)


def for_transformers(out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
    """A `transformers.TrainerCallback` that measures optimizer steps; what came of it is in its `watch`.

    Raises:
        TorchdiagError: transformers is not installed.
    """
    base = _class("transformers.trainer_callback", "TrainerCallback", "transformers")

    class ProfileCallback(base):
        """Measures the steps of a `Trainer`."""

        def __init__(self) -> None:
            self.watch = _Watch(out, options)

        def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            if state.is_world_process_zero:
                self.watch.begin()

        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            self.watch.step()

        def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            self.watch.end()

    return ProfileCallback()


def for_lightning(out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
    """A Lightning `Callback` that measures training batches, for `lightning` and `pytorch_lightning` alike.

    Raises:
        TorchdiagError: neither is installed.
    """
    base = _class("lightning.pytorch", "Callback", "lightning", instead="pytorch_lightning")

    class ProfileCallback(base):
        """Measures the batches of a Lightning `Trainer`."""

        def __init__(self) -> None:
            super().__init__()
            self.watch = _Watch(out, options)

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            if trainer.is_global_zero:
                self.watch.begin()

        def on_train_batch_end(self, trainer: Any, pl_module: Any, *more: Any) -> None:
            self.watch.step()

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            self.watch.end()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            self.watch.end(exception)

    return ProfileCallback()


def _class(module: str, name: str, package: str, instead: str | None = None) -> Any:
    for candidate in (module, instead):
        if candidate is None:
            continue
        try:
            return getattr(import_module(candidate), name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.split(".", 1)[0] != candidate.split(".", 1)[0]:
                raise
    raise TorchdiagError(f"{package} is not installed here: run `pip install {package}`.")
