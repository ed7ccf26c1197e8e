"""The recorders that run beside a pass, as one: C++ exceptions, collections, warnings, and Python exceptions."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack

from torchdiag.capture import throw_probe
from torchdiag.capture.clock import ClockMap, now_ns, read_pair
from torchdiag.capture.exception_records import ExceptionSummary
from torchdiag.capture.exceptions import ExceptionRecorder
from torchdiag.capture.gc_recorder import GcRecorder, GcSummary
from torchdiag.capture.throw_recorder import ThrowRecorder, ThrowSummary
from torchdiag.capture.tracks import Event, to_trace_events
from torchdiag.capture.warnings_recorder import WarningsRecorder, WarningsSummary
from torchdiag.errors import TorchdiagError
from torchdiag.history.run_result import CollectionSum, ExceptionPlace, RecorderResult, ThrowPlace, WarningPlace

CHEAP_EXCEPTIONS = sys.version_info >= (3, 12)
"""Whether recording Python exceptions costs nothing where none are raised (`sys.monitoring`)."""


class Beside:
    """Recorders from `start()` to `stop()`, told of each step border; `exceptions` says whether Python's are recorded.

    A recorder that cannot run here is left out, with the reason in the result; the others run all the same.
    """

    def __init__(self, *, exceptions: bool) -> None:
        self._want_exceptions = exceptions
        self._stack = ExitStack()
        self._exceptions: ExceptionRecorder | None = None
        self._throws: ThrowRecorder | None = None
        self._collections = GcRecorder()
        self._warnings = WarningsRecorder()
        self._missing = {"exceptions": "", "throws": ""}
        self._first = self._last = read_pair()
        self.steps: list[tuple[int, int]] = []
        self._began_ns = 0
        self._running = False

    def start(self) -> None:
        """The first step begins."""
        self._first = read_pair()
        self._stack.enter_context(self._warnings)
        self._stack.enter_context(self._collections)
        try:
            self._throws = self._stack.enter_context(ThrowRecorder())
        except TorchdiagError:
            self._missing["throws"] = throw_probe.available().reason
        if self._want_exceptions:
            try:
                # Last in, first out: the recorders' own work is not what it is to see.
                self._exceptions = self._stack.enter_context(ExceptionRecorder())
            except TorchdiagError as error:
                self._missing["exceptions"] = str(error)
        self._running = True
        self._began_ns = now_ns()

    def step(self) -> None:
        """A step is over, the next one begins."""
        now = now_ns()
        self.steps.append((self._began_ns, now))
        for recorder in (self._exceptions, self._throws, self._collections, self._warnings):
            if recorder is not None:
                recorder.step()
        self._began_ns = now_ns()

    def stop(self) -> None:
        """No more is recorded. Harmless when nothing is."""
        if self._running:
            self._running = False
            self._stack.close()
            self._last = read_pair()

    @property
    def has_exceptions(self) -> bool:
        """Whether single Python exceptions were recorded."""
        return self._exceptions is not None and bool(self._exceptions.summary().slices)

    @property
    def clock(self) -> ClockMap:
        """From the clock of `steps` to the wall clock, once stopped."""
        return ClockMap(self._first, self._last)

    def events(self, pid: int, base_ns: int) -> Sequence[Event]:
        """What was recorded as events of a trace of process `pid` whose `baseTimeNanoseconds` is `base_ns`."""
        return to_trace_events(
            pid=pid,
            base_ns=base_ns,
            clock=self.clock,
            exceptions=self._exceptions.summary() if self._exceptions is not None else None,
            throws=self._throws.summary() if self._throws is not None else None,
            collections=self._collections.summary(),
            warnings=self._warnings.summary(),
        )

    def exception_events(self, pid: int, base_ns: int) -> Sequence[Event]:
        """The Python exceptions alone, as `events`."""
        if self._exceptions is None:
            return ()
        summary = self._exceptions.summary()
        return to_trace_events(pid=pid, base_ns=base_ns, clock=summary.clock, exceptions=summary)

    def result(self) -> RecorderResult:
        """What was recorded, for the result; what came after the last step border is left out of the `per_step`s."""
        exceptions = self._exceptions.summary() if self._exceptions is not None else None
        throws = self._throws.summary() if self._throws is not None else None
        collections = self._collections.summary()
        warned = self._warnings.summary()
        count = len(self.steps)
        return RecorderResult(
            steps=count,
            mechanism=exceptions.mechanism if exceptions is not None else "",
            exceptions=_exception_places(exceptions),
            exceptions_per_step=_per_step(exceptions, count),
            exceptions_missing=self._missing["exceptions"],
            untracked=exceptions.untracked if exceptions is not None else 0,
            interrupted=exceptions.interrupted if exceptions is not None else False,
            throws=_throw_places(throws),
            throws_per_step=_per_step(throws, count),
            throws_missing=self._missing["throws"],
            throws_dropped=throws.dropped if throws is not None else 0,
            collections=tuple(
                CollectionSum(
                    generation=item.generation,
                    count=item.count,
                    total_ns=item.total_ns,
                    longest_ns=item.longest_ns,
                    collected=item.collected,
                )
                for item in collections.generations
            ),
            collections_per_step=_per_step(collections, count),
            warnings=tuple(
                WarningPlace(category=site.category, issued_at=str(site.issued_at), count=site.count, shown=site.shown)
                for site in warned.sites
            ),
            warnings_per_step=_per_step(warned, count),
            exception_cost_ns=exceptions.cost.exception_ns if exceptions is not None else None,
            call_cost_ns=exceptions.cost.call_ns if exceptions is not None else None,
        )


def _per_step(
    summary: ExceptionSummary | ThrowSummary | GcSummary | WarningsSummary | None, count: int
) -> tuple[int, ...]:
    return () if summary is None else tuple(step.count for step in summary.steps[:count])


def _exception_places(summary: ExceptionSummary | None) -> tuple[ExceptionPlace, ...] | None:
    if summary is None:
        return None
    return tuple(
        ExceptionPlace(
            type=site.type,
            raised_at=str(site.raised_at),
            handled_at=None if site.handled_at is None else str(site.handled_at),
            outcome=site.outcome.value,
            count=site.count,
            total_ns=site.total_ns,
            max_ns=site.max_ns,
        )
        for site in summary.sites
    )


def _throw_places(summary: ThrowSummary | None) -> tuple[ThrowPlace, ...] | None:
    if summary is None:
        return None
    return tuple(
        ThrowPlace(
            type=site.type,
            library=site.library,
            symbol=site.symbol,
            count=site.count,
            caught=site.caught,
            total_ns=site.total_ns,
        )
        for site in summary.sites
    )
