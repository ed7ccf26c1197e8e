"""Sees exceptions through `sys.monitoring` (PEP 669, Python 3.12 and later).

The events used here are those that Python does not put into the bytecode of any function, so code that raises nothing
runs at full speed. All threads are seen, also those that run already.

What it cannot see:
* an exception raised and swallowed inside C code with no Python frame in between: `hasattr(x, "y")`, `getattr(x, "y",
  None)` and `dict.get` on plain objects raise none at all or none that reaches a frame. As soon as a Python
  `__getattr__` or property raises, the exception is seen (outcome `left-to-c`);
* the time before the exception object appears: building its message, or unwinding C++ frames below (the throw probe
  sees those);
* what another tool's callbacks do at the same events: the time they take is in the times recorded here.
"""

import sys
from types import CodeType

from torchdiag.capture.exception_flights import Ledger, traceback_of
from torchdiag.errors import TorchdiagError

if sys.version_info < (3, 12):
    raise ImportError("sys.monitoring needs Python 3.12 or later")

_frame = sys._getframe  # pyright: ignore[reportPrivateUsage]

_TOOL_NAME = "torchdiag"
# 3 and 4 belong to nobody; 2 is meant for profilers, and this is one. The debugger's, the coverage tool's and the
# optimizer's own numbers are left to them even while unused: they may come later.
_TOOL_IDS = (3, 4, 2)


class MonitoringMechanism:
    """Feeds a ledger from `sys.monitoring`, under a tool number of its own."""

    name = "sys.monitoring"

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._tool_id: int | None = None

    def start(self) -> None:
        """Take a free tool number and begin.

        Raises `TorchdiagError` if other tools hold all the numbers that may be used.
        """
        monitoring = sys.monitoring
        for tool_id in _TOOL_IDS:
            if monitoring.get_tool(tool_id) is not None:
                continue
            try:
                monitoring.use_tool_id(tool_id, _TOOL_NAME)
            except ValueError:  # taken by another thread since
                continue
            break
        else:
            holders = ", ".join(str(monitoring.get_tool(tool_id)) for tool_id in _TOOL_IDS)
            raise TorchdiagError(
                f"Exceptions cannot be recorded: the sys.monitoring tool numbers {_TOOL_IDS} are all taken, by "
                f"{holders}. Stop one of these tools, or profile without recording exceptions."
            )
        self._tool_id = tool_id
        events = monitoring.events
        monitoring.register_callback(tool_id, events.RAISE, self._raised)
        monitoring.register_callback(tool_id, events.RERAISE, self._reraised)
        monitoring.register_callback(tool_id, events.EXCEPTION_HANDLED, self._handled)
        monitoring.register_callback(tool_id, events.PY_UNWIND, self._unwound)
        monitoring.set_events(tool_id, events.RAISE | events.RERAISE | events.EXCEPTION_HANDLED | events.PY_UNWIND)

    def stop(self) -> bool:
        """End, and give the tool number back. Returns whether all went undisturbed (here always)."""
        tool_id, self._tool_id = self._tool_id, None
        if tool_id is None:
            return True
        monitoring, events = sys.monitoring, sys.monitoring.events
        monitoring.set_events(tool_id, 0)
        for event in (events.RAISE, events.RERAISE, events.EXCEPTION_HANDLED, events.PY_UNWIND):
            monitoring.register_callback(tool_id, event, None)
        monitoring.free_tool_id(tool_id)
        return True

    def _raised(self, code: CodeType, offset: int, exc: BaseException) -> None:
        self._ledger.raised(code, offset, exc, traceback_of(exc), _frame(1))

    def _reraised(self, code: CodeType, offset: int, exc: BaseException) -> None:
        self._ledger.reraised(code, offset, exc, _frame(1))

    def _handled(self, code: CodeType, offset: int, exc: BaseException) -> None:
        self._ledger.handled(code, offset, id(exc), type(exc), _frame(1))

    def _unwound(self, code: CodeType, offset: int, exc: BaseException) -> None:
        self._ledger.unwound(id(exc), type(exc), _frame(1))
