"""One step in which the public functions of torch that Python calls are written down."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false
# torch leaves parts of its own signatures untyped.

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from torchdiag.capture.passes import Stage


class Functions:
    """The names of the functions, as `torch.overrides.resolve_name` has them: those that were called by no other one.

    What autograd and optimizers do in C++ is called by nobody in Python, and does not count.
    """

    def begin(self, stage: Stage) -> None:
        """See `Pass`."""
        self._stage = stage
        self._stack = ExitStack()
        self._seen: set[Any] = set()
        self._stack.enter_context(_recorder(self._seen))

    def border(self) -> bool:
        """See `Pass`."""
        self._stack.close()
        return True

    def end(self, *, early: bool) -> None:
        """See `Pass`."""
        self._stack.close()
        if not early:
            self._stage.hand_over.describe(functions=_names(self._seen))


def _recorder(seen: set[Any]) -> Any:
    from torch.overrides import TorchFunctionMode  # noqa: PLC0415 - so that the command line starts without torch

    class Recorder(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.add(func)
            return func(*args, **(kwargs or {}))

    return Recorder()


def _names(seen: set[Any]) -> tuple[str, ...]:
    from torch.overrides import resolve_name  # noqa: PLC0415

    names = {resolve_name(function) for function in seen}
    return tuple(sorted(name for name in names if name is not None and is_public(name)))


def is_public(name: str) -> bool:
    """Whether a name is one of torch's that users call: no property, nothing with an underscore before it."""
    module, *rest = name.split(".")
    dunder = [part for part in rest if part.startswith("__") and part.endswith("__")]
    return (
        module == "torch"
        and rest[-1:] not in (["__get__"], ["__set__"])
        and all(part in dunder or not part.startswith("_") for part in rest)
    )
