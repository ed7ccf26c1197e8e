"""Work done in a thread of its own while the caller does something else; numpy and the native part let both run."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Beside(Generic[T]):
    """The result of `work`, which begins at once. What it raises, `result` raises.

    Leaving it as a context waits for the end of the work, whatever became of it.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), name="torchdiag-beside", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Beside[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def result(self) -> T:
        """Wait for the result."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self, work: Callable[[], T]) -> None:
        try:
            self._results.append(work())
        except BaseException as error:
            self._error = error
