"""Sees exceptions through `sys.settrace`, for Python 3.11, which has nothing better.

Every call of a Python function, and every instruction, is slower while this is on (see `RecorderCost.call_ns`), so it
belongs into a short pass of its own whose times are not used for anything else. Frames are traced for calls, returns
and exceptions, not for lines; a frame in which an exception appeared is traced by instruction until its handlers are
done, since only the instructions tell a handler that took the exception from one that gave it back.

What it cannot see:
* threads that ran before it began, except the one that began it (Python 3.11 has no way to trace those);
* an exception raised and swallowed inside C code with no Python frame in between (as with `sys.monitoring`);
* anything once another tool calls `sys.settrace`, and anything of a thread once it has hit the recursion limit, where
  Python takes the tracer away (the recording is then marked as interrupted, if that was in the thread that began it).

A traced frame's locals are also held by the interpreter's copy of them until the next event of that frame, so memory is
not to be measured in this pass.
"""

import opcode
import sys
import threading
from collections.abc import Callable
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import FrameType
from typing import Any, Final, cast

from torchdiag.capture.exception_flights import Ledger, is_error
from torchdiag.errors import TorchdiagError

_TraceFunction = Callable[[FrameType, str, Any], Any]

_PUSH_EXC_INFO: Final = opcode.opmap["PUSH_EXC_INFO"]
_POP_EXCEPT: Final = opcode.opmap["POP_EXCEPT"]
_RERAISE: Final = opcode.opmap["RERAISE"]
_RAISE: Final = opcode.opmap["RAISE_VARARGS"]
_LOOPS: Final = (opcode.opmap["FOR_ITER"], opcode.opmap["SEND"])
_RESUMABLE: Final = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR


class SettraceMechanism:
    """Feeds a ledger from trace functions of the calling thread and of every thread begun later."""

    name = "sys.settrace"

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._on = False
        self._previous_hook: _TraceFunction | None = None
        self._outer: list[tuple[FrameType, _TraceFunction | None, bool]] = []
        # Bound once: `sys.gettrace() is self._global` must hold, and a bound method is a new object at each access.
        self._global: _TraceFunction = self._called
        self._local: _TraceFunction = self._traced

    def start(self) -> None:
        """Begin to trace.

        Raises `TorchdiagError` if another tool (a debugger, a coverage measurement) traces this thread already.
        """
        if sys.version_info >= (3, 12):
            raise TorchdiagError("Exceptions are recorded through sys.monitoring on Python 3.12 and later.")
        other = sys.gettrace()
        if other is not None:
            raise TorchdiagError(
                f"Exceptions cannot be recorded: {_describe(other)} traces this program already, and Python 3.11 "
                "allows one tracer. Run without it (debugger, coverage), or use Python 3.12 or later."
            )
        self._on = True
        self._previous_hook = cast(_TraceFunction | None, threading.gettrace())
        threading.settrace(self._global)
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None:
            self._outer.append((frame, frame.f_trace, frame.f_trace_lines))
            frame.f_trace, frame.f_trace_lines = self._local, False
            frame = frame.f_back
        sys.settrace(self._global)

    def stop(self) -> bool:
        """End. Other threads notice at their next call. Returns False if another tracer had taken over meanwhile."""
        if not self._on:
            return True
        self._on = False
        undisturbed = sys.gettrace() is self._global
        if undisturbed:
            sys.settrace(None)
        if threading.gettrace() is self._global:
            threading.settrace(self._previous_hook)  # pyright: ignore[reportArgumentType]
        for frame, trace, lines in self._outer:
            frame.f_trace, frame.f_trace_lines, frame.f_trace_opcodes = trace, lines, False
        self._outer.clear()
        return undisturbed

    def _called(self, frame: FrameType, event: str, argument: Any) -> _TraceFunction | None:
        if not self._on:
            if sys.gettrace() is self._global:
                sys.settrace(None)
            return None
        frame.f_trace_lines = False
        if frame.f_code.co_flags & _RESUMABLE:
            watch = getattr(frame.f_trace, "__self__", None)
            if isinstance(watch, _FrameWatch):
                return frame.f_trace
        return self._local

    def _traced(self, frame: FrameType, event: str, argument: Any) -> _TraceFunction | None:
        if event != "exception" or not self._on:
            return self._local if self._on else None
        if not is_error(argument[0]):
            return self._local
        return _FrameWatch(self._ledger, self).traced(frame, event, argument)

    @property
    def on(self) -> bool:
        """Whether recording is on."""
        return self._on


class _FrameWatch:
    """Follows one frame from its first exception on, by instruction while handlers are at work.

    `entries` are the exceptions whose handlers have been entered and not left, oldest first, each with whether its
    handler put it on the interpreter's stack of handled exceptions (the clean-up code behind an `except` does not).
    """

    def __init__(self, ledger: Ledger, mechanism: SettraceMechanism) -> None:
        self._ledger = ledger
        self._mechanism = mechanism
        self._entries: list[tuple[int, type[BaseException], bool]] = []
        self._travelling: tuple[int, type[BaseException]] | None = None

    def traced(self, frame: FrameType, event: str, argument: Any) -> _TraceFunction | None:
        """The frame's trace function."""
        if not self._mechanism.on:
            return None
        if event == "opcode":
            self._instruction(frame)
        elif event == "exception":
            kind, exc, traceback = argument
            # The end of a loop is reported as an exception that enters no handler.
            if is_error(kind) or frame.f_code.co_code[frame.f_lasti] not in _LOOPS:
                self._travelling = (id(exc), kind)
                frame.f_trace_opcodes = True
                self._ledger.raised(frame.f_code, frame.f_lasti, exc, traceback, frame)
        elif event == "return" and self._travelling is not None:
            identity, kind = self._travelling
            self._travelling = None
            self._ledger.unwound(identity, kind, frame)
        return self.traced

    def _instruction(self, frame: FrameType) -> None:
        code, at = frame.f_code, frame.f_lasti
        name = code.co_code[at]
        if self._travelling is not None:
            # The first instruction after an exception is that of a handler.
            identity, kind = self._travelling
            self._travelling = None
            self._ledger.handled(code, at, identity, kind, frame)
            self._entries.append((identity, kind, name == _PUSH_EXC_INFO))
        if name == _POP_EXCEPT:
            for index in range(len(self._entries) - 1, -1, -1):
                identity, kind, pushed = self._entries[index]
                if pushed:
                    del self._entries[index]
                    if index == len(self._entries) and code.co_code[at + 2] == _RERAISE:
                        # An `except*` leaves its handler before it gives the rest of the group back.
                        self._entries.append((identity, kind, False))
                    break
        elif name == _RERAISE and self._entries:
            identity, kind, pushed = self._entries[-1]
            if not pushed:
                self._entries.pop()
            self._gave_back(identity, kind)
        elif name == _RAISE and code.co_code[at + 1] == 0:
            exc = sys.exception()
            if exc is not None:
                self._gave_back(id(exc), type(exc))
        if not self._entries and self._travelling is None:
            frame.f_trace_opcodes = False

    def _gave_back(self, identity: int, kind: type[BaseException]) -> None:
        self._travelling = (identity, kind)
        self._ledger.given_back(identity, kind)


def _describe(tracer: object) -> str:
    module = getattr(tracer, "__module__", None) or type(tracer).__module__
    name = getattr(tracer, "__qualname__", None) or type(tracer).__qualname__
    return f"{module}.{name}"
