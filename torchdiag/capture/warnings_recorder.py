"""Counts the warnings a program issues, shown or not: formatting and filtering them takes time in every step.

What the user sees does not change. `warnings.warn` and `warnings.warn_explicit` are replaced by functions that count
and pass on (one more frame in the traceback of a warning that the filters turn into an error); warnings issued by C and
C++ code (`PyErr_WarnEx`, torch's TORCH_WARN) go around them and are counted where they are shown.

What it cannot see: warnings of C and C++ code that the filters silence, and those of code that did `from warnings
import warn` before the recording, unless they are shown.
"""

import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Final, Self

from torchdiag.capture.clock import now_ns
from torchdiag.capture.exception_records import Site
from torchdiag.capture.step_marks import StepMarks

_frame: Final[Callable[[int], FrameType]] = sys._getframe  # pyright: ignore[reportPrivateUsage]


@dataclass(frozen=True, slots=True)
class WarningSite:
    """Warnings of one category issued at one place: the call of `warnings.warn`, or, for those of C code, the line they
    are attributed to. `shown` of the `count` passed the filters.
    """

    category: str
    issued_at: Site
    count: int
    shown: int


@dataclass(frozen=True, slots=True)
class StepWarnings:
    """The warnings issued in one step, most frequent first; `untracked` at places beyond the limit. Monotonic ns."""

    index: int
    start_ns: int
    end_ns: int
    sites: tuple[WarningSite, ...]
    untracked: int

    @property
    def count(self) -> int:
        """All warnings of the step."""
        return sum(site.count for site in self.sites) + self.untracked


@dataclass(frozen=True, slots=True)
class WarningsSummary:
    """A finished recording, by step and in total. `interrupted`: other code replaced the recorder's functions."""

    steps: tuple[StepWarnings, ...]
    sites: tuple[WarningSite, ...]
    untracked: int
    interrupted: bool


class _Issuing(threading.local):
    """What the thread's call of `warnings.warn` under way has shown; None outside one."""

    shown: int | None = None


_Place = tuple[str, Site]


class WarningsRecorder:
    """Counts the warnings of every thread inside its `with` block, at no more than `max_sites` distinct places."""

    def __init__(self, *, max_sites: int = 512) -> None:
        self._max_sites = max_sites
        self._marks = StepMarks()
        self._lock = threading.Lock()
        self._counts: dict[tuple[int, _Place], list[int]] = {}
        self._places: set[_Place] = set()
        self._untracked: dict[int, int] = {}
        self._issuing = _Issuing()
        self._on = False
        self._interrupted = False
        self._stopped_ns: int | None = None
        self._originals: dict[str, Callable[..., Any]] = {}
        self._replacements: dict[str, Callable[..., Any]] = {}

    def __enter__(self) -> Self:
        self._marks = StepMarks()
        self._on = True
        self._replacements = {
            "warn": self._warn(warnings.warn),
            "warn_explicit": self._warn_explicit(warnings.warn_explicit),
            "_showwarnmsg": self._show(warnings._showwarnmsg),  # pyright: ignore
        }
        for name, replacement in self._replacements.items():
            self._originals[name] = getattr(warnings, name)
            setattr(warnings, name, replacement)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._on = False
        self._stopped_ns = now_ns()
        for name, replacement in self._replacements.items():
            if getattr(warnings, name) is replacement:
                setattr(warnings, name, self._originals[name])
            else:
                # Somebody wrapped ours: what remains of it in there passes on and counts no more.
                self._interrupted = True

    def step(self) -> None:
        """The step in progress is over, the next one begins."""
        self._marks.step()

    def _warn(self, original: Callable[..., None]) -> Callable[..., None]:
        def warn(
            message: Any,
            category: type[Warning] | None = None,
            stacklevel: int = 1,
            source: Any = None,
            **more: Any,
        ) -> None:
            caller = _frame(1)
            level = _level_from_here(stacklevel, more.get("skip_file_prefixes", ()), caller)
            if not self._on:
                original(message, category, level, source, **more)
                return
            site = Site(caller.f_code.co_filename, caller.f_lineno, caller.f_code.co_qualname)
            outer = self._begin()
            try:
                # From here and no deeper, since the level counts frames.
                original(message, category, level, source, **more)
            finally:
                self._end((_category(message, category), site), outer)

        return warn

    def _warn_explicit(self, original: Callable[..., None]) -> Callable[..., None]:
        def warn_explicit(message: Any, category: Any, filename: str, lineno: int, *others: Any, **more: Any) -> None:
            arguments = (message, category, filename, lineno, *others)
            if not self._on:
                original(*arguments, **more)
                return
            site = Site(filename, lineno, "")
            outer = self._begin()
            try:
                original(*arguments, **more)
            finally:
                self._end((_category(message, category), site), outer)

        return warn_explicit

    def _show(self, original: Callable[[warnings.WarningMessage], None]) -> Callable[[warnings.WarningMessage], None]:
        def show(message: warnings.WarningMessage) -> None:
            if self._on:
                if self._issuing.shown is None:
                    place = (_name(message.category), Site(message.filename, message.lineno, ""))
                    self._count(place, 1)
                else:
                    self._issuing.shown += 1
            original(message)

        return show

    def _begin(self) -> int | None:
        outer, self._issuing.shown = self._issuing.shown, 0
        return outer

    def _end(self, place: _Place, outer: int | None) -> None:
        shown, self._issuing.shown = self._issuing.shown or 0, outer
        self._count(place, shown)

    def _count(self, place: _Place, shown: int) -> None:
        step = self._marks.index
        with self._lock:
            if place not in self._places:
                if len(self._places) >= self._max_sites:
                    self._untracked[step] = self._untracked.get(step, 0) + 1
                    return
                self._places.add(place)
            counts = self._counts.setdefault((step, place), [0, 0])
            counts[0] += 1
            counts[1] += shown

    def summary(self) -> WarningsSummary:
        """What was counted. Raises `RuntimeError` while still recording."""
        stopped = self._stopped_ns
        if stopped is None:
            raise RuntimeError("The summary is there once the recording has been stopped.")
        last = self._marks.index
        has_rest = last in self._untracked or any(step == last for step, _ in self._counts)
        return WarningsSummary(
            steps=tuple(
                StepWarnings(
                    index, *self._marks.bounds(index, stopped), self._sites(index), self._untracked.get(index, 0)
                )
                for index in self._marks.listed(has_rest)
            ),
            sites=self._sites(None),
            untracked=sum(self._untracked.values()),
            interrupted=self._interrupted,
        )

    def _sites(self, step: int | None) -> tuple[WarningSite, ...]:
        found: dict[_Place, list[int]] = {}
        for (at, place), counts in self._counts.items():
            if step is None or at == step:
                known = found.setdefault(place, [0, 0])
                known[:] = known[0] + counts[0], known[1] + counts[1]
        sites = [WarningSite(*place, *counts) for place, counts in found.items()]
        return tuple(sorted(sites, key=lambda site: (-site.count, str(site))))


def _level_from_here(stacklevel: int, skipped: tuple[str, ...], caller: FrameType) -> int:
    """The stack level that names, from the frame below `caller`, what `stacklevel` names from `caller`."""
    if not skipped:
        return max(stacklevel, 1) + 1
    # With prefixes to skip the level is at least 2, and skipped frames are not counted; `caller` may be one of them.
    # (CPython leaves the last character out when it compares, so a whole file name skips nothing.)
    return max(stacklevel, 2) + (not caller.f_code.co_filename[:-1].startswith(skipped))


def _category(message: object, category: object) -> str:
    # As warnings.warn does: a Warning object brings its own category.
    if isinstance(message, Warning):
        return _name(type(message))
    return _name(category if isinstance(category, type) else UserWarning)


def _name(category: type) -> str:
    return (
        category.__qualname__ if category.__module__ == "builtins" else f"{category.__module__}.{category.__qualname__}"
    )
