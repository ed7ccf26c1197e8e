"""Iterations of a DataLoader as step borders: a step runs from one fetch to the next, the fetch included."""

# pyright: reportUnknownMemberType=false, reportPrivateUsage=false, reportUnknownVariableType=false
# torch leaves parts of its own signatures untyped.

from collections.abc import Callable
from typing import Any
from weakref import ref


class LoaderSteps:
    """Calls `tick` before each fetch of the program's first DataLoader, and of its next ones after that has ended.

    The fetch that finds the end of an epoch closes the last step; what follows until the next epoch's first fetch
    belongs to the step of that fetch.
    """

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick
        self._followed: ref[Any] | None = None
        self._ended = False
        self._class: Any = None
        self._original: Any = None

    def install(self) -> None:
        """Hook into torch's DataLoader iterators. Torch has been imported."""
        from torch.utils.data.dataloader import _BaseDataLoaderIter  # noqa: PLC0415 - torch is imported late

        original = _BaseDataLoaderIter.__next__
        self._class, self._original = _BaseDataLoaderIter, original

        def fetch(iterator: Any) -> Any:
            if self._original is None or not self._follows(iterator):
                return original(iterator)
            if self._ended:
                self._ended = False
            else:
                self._tick()
            try:
                return original(iterator)
            except StopIteration:
                self._ended = True
                self._followed = None
                raise

        self._class.__next__ = fetch

    def remove(self) -> None:
        """Take the hook away."""
        if self._original is not None:
            self._class.__next__, self._original = self._original, None

    def _follows(self, iterator: Any) -> bool:
        followed = self._followed() if self._followed is not None else None
        if followed is None:
            self._followed = ref(iterator)
            return True
        return followed is iterator
