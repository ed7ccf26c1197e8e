"""Records Python exceptions: how many, of which type, raised and handled where, and the time in between.

    with ExceptionRecorder() as recorder:
        for batch in batches:
            train(batch)
            recorder.step()
    for site in recorder.summary().sites:
        print(site.count, site.type, site.raised_at, site.handled_at, site.total_ns)

One exception is one record, however many frames it passes and however often a `finally`, a `with` or a `raise` hands
it on; `raise B from a` inside a handler is a second exception. Its time runs from where it appears to where the last
handler that it reached begins; it belongs to the step in which it was raised. StopIteration, StopAsyncIteration and
GeneratorExit (exactly these types) are how iteration works and are not recorded.

What each mechanism cannot see is said in `exceptions_monitoring` (Python 3.12 and later) and `exceptions_settrace`
(3.11).
"""

import sys
from collections.abc import Callable
from functools import cache
from time import thread_time_ns
from types import TracebackType
from typing import Protocol, Self

from torchdiag.capture.clock import ClockMap, now_ns, read_pair
from torchdiag.capture.exception_flights import Ledger
from torchdiag.capture.exception_records import ExceptionSummary, RecorderCost
from torchdiag.capture.exception_sums import summarise
from torchdiag.capture.step_marks import StepMarks


class Mechanism(Protocol):
    """A way to see exceptions."""

    @property
    def name(self) -> str:
        """`sys.monitoring` or `sys.settrace`."""
        ...

    def start(self) -> None:
        """Begin; raises `TorchdiagError` if another tool is in the way."""
        ...

    def stop(self) -> bool:
        """End; returns False if another tool took over on the way."""
        ...


def mechanism_for(ledger: Ledger) -> Mechanism:
    """The mechanism of this Python version."""
    if sys.version_info >= (3, 12):
        from torchdiag.capture.exceptions_monitoring import MonitoringMechanism  # noqa: PLC0415

        return MonitoringMechanism(ledger)
    from torchdiag.capture.exceptions_settrace import SettraceMechanism  # noqa: PLC0415

    return SettraceMechanism(ledger)


class ExceptionRecorder:
    """Records the exceptions of every thread between `start()` and `stop()`, or inside its `with` block.

    At most `max_sites` distinct places (type, raise, handler) and `max_slices` single exceptions are kept; what is
    beyond is counted. A recorder is used once.
    """

    def __init__(self, *, max_sites: int = 512, max_slices: int = 20_000) -> None:
        self._max_sites = max_sites
        self._max_slices = max_slices
        self._marks = StepMarks()
        self._ledger = Ledger(self._marks, now_ns, max_sites, max_slices)
        self._mechanism: Mechanism | None = None
        self._undisturbed = True
        self._first = self._last = read_pair()
        self._stopped_ns: int | None = None
        self._cost = RecorderCost(0.0, 0.0)

    def start(self) -> None:
        """Begin to record.

        Raises `TorchdiagError` if another tool is in the way (a tracer on Python 3.11, all tool numbers taken on later
        ones), and `RuntimeError` if this recorder was started before.
        """
        if self._mechanism is not None:
            raise RuntimeError("An ExceptionRecorder records once; make a new one.")
        self._cost = recorder_cost()
        self._marks = StepMarks()
        self._ledger = Ledger(self._marks, now_ns, self._max_sites, self._max_slices)
        mechanism = mechanism_for(self._ledger)
        self._first = read_pair()
        mechanism.start()
        self._mechanism = mechanism

    def stop(self) -> None:
        """End recording; whatever the recorder put in place is taken away again. Harmless when not recording."""
        if self._mechanism is None or self._stopped_ns is not None:
            return
        self._undisturbed = self._mechanism.stop()
        self._stopped_ns = now_ns()
        self._last = read_pair()
        self._ledger.close_all()

    def step(self) -> None:
        """The step in progress is over, the next one begins."""
        self._marks.step()

    def summary(self) -> ExceptionSummary:
        """What was recorded. Raises `RuntimeError` while still recording."""
        if self._mechanism is None or self._stopped_ns is None:
            raise RuntimeError("The summary is there once the recording has been stopped.")
        return summarise(
            self._ledger,
            self._marks,
            mechanism=self._mechanism.name,
            now=self._stopped_ns,
            interrupted=not self._undisturbed,
            cost=self._cost,
            clock=ClockMap(self._first, self._last),
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc is not None:
            self._ledger.escaped(exc)
        self.stop()


class _CalibrationError(Exception):
    pass


def _raise_and_handle(times: int) -> int:
    error = _CalibrationError()
    began = thread_time_ns()
    for _ in range(times):
        try:
            raise error
        except _CalibrationError:
            error.__traceback__ = None
    return thread_time_ns() - began


def _nothing() -> None:
    pass


def _call(times: int) -> int:
    began = thread_time_ns()
    for _ in range(times):
        _nothing()
    return thread_time_ns() - began


_TIMES = 200
_REPEATS = 5


@cache
def recorder_cost() -> RecorderCost:
    """Measure once in this process what recording costs, with the mechanism of this Python version.

    The best of five runs with the recorder on minus the best of five with it off, per exception and per call, in
    processor time of the thread so that a busy machine does not count. Takes a few milliseconds. Raises
    `TorchdiagError` as `ExceptionRecorder.start` does.
    """
    with_it = _measure(on=True)
    without = _measure(on=False)
    return RecorderCost(
        exception_ns=max(0.0, (with_it[0] - without[0]) / _TIMES),
        call_ns=max(0.0, (with_it[1] - without[1]) / _TIMES),
    )


def _measure(*, on: bool) -> tuple[int, int]:
    mechanism = mechanism_for(Ledger(StepMarks(), now_ns, 16, _TIMES * _REPEATS))
    if on:
        mechanism.start()
    try:
        return _best(_raise_and_handle), _best(_call)
    finally:
        mechanism.stop()


def _best(run: Callable[[int], int]) -> int:
    return min(run(_TIMES) for _ in range(_REPEATS))
