"""What a person writes to choose steps or a stretch of time, read strictly."""

import re
from decimal import Decimal

from torchdiag.errors import TorchdiagError

_STEPS = re.compile(r"(-?\d{1,18})|(-?\d{1,18})?:(-?\d{1,18})?")
_INSTANT = re.compile(r"(?P<number>\d{1,18}(?:\.\d{1,12})?)(?P<unit>ns|us|µs|μs|ms|s)|(?P<clock>-?\d{1,19})")
_UNITS_NS = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def step_slice(text: str) -> slice:
    """The steps `text` names, counted from 0 like a Python slice: `2:5`, `3`, `:4`, `-2:`.

    Raises TorchdiagError for anything else.
    """
    match = _STEPS.fullmatch(text.strip())
    if match is None:
        raise TorchdiagError(f"steps {text!r}: write 2:5, 3, :4 or -2: (steps are counted from 0, the end is left out)")
    single, start, stop = match.groups()
    if single is None:
        return slice(int(start) if start else None, int(stop) if stop else None)
    index = int(single)
    return slice(index, index + 1 or None)


def window_bounds(text: str, first_ns: int, last_ns: int) -> tuple[int, int]:
    """Start and end, in nanoseconds of the trace's clock, of the window `text` names.

    `12ms:40ms` counts from the trace's first event (`first_ns`); units are ns, us, ms and s. A number without a unit
    is an instant of the trace's own clock in nanoseconds, as `--json` prints it. A side left out is the trace's own
    first or last instant. Raises TorchdiagError when it cannot be read or holds no time.
    """
    sides = text.strip().split(":")
    if len(sides) != 2:
        raise TorchdiagError(f"window {text!r}: write two times with a colon between, as in 12ms:40ms or 1.5s:")
    start = _instant(sides[0], text, first_ns) if sides[0].strip() else first_ns
    end = _instant(sides[1], text, first_ns) if sides[1].strip() else last_ns
    length = (last_ns - first_ns) / 1_000_000
    if start >= end:
        raise TorchdiagError(f"window {text!r} holds no time; the trace runs from 0ms to {length:.3f}ms")
    if start >= last_ns or end <= first_ns:
        raise TorchdiagError(f"window {text!r} lies outside the trace, which runs from 0ms to {length:.3f}ms")
    return start, end


def _instant(side: str, text: str, first_ns: int) -> int:
    match = _INSTANT.fullmatch(side.strip())
    if match is None:
        raise TorchdiagError(f"window {text!r}: {side.strip()!r} is no time; write a number and ns, us, ms or s")
    if match["clock"] is not None:
        return int(match["clock"])
    return first_ns + round(Decimal(match["number"]) * _UNITS_NS[match["unit"]])
