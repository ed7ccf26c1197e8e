"""Values of a suite file: each reading takes what TOML gave and returns what is meant by it."""

import difflib
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, cast

from torchdiag.models.workload import Mode

Reading = Callable[[object], Any]
BatchChoice = tuple[int, ...] | Literal["tune"]
"""Batch sizes, each tried; or the smallest that is within 1 % of the fastest."""

_DEVICE: Final = re.compile(r"(auto|cpu|mps|cuda(:\d+)?|xpu(:\d+)?)\Z")
_COMPILE: Final = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_MODES: Final[tuple[Mode, ...]] = ("train", "eval")


class WrongValueError(Exception):
    """The value cannot be meant; `inside` is the path from it to what is wrong in it."""

    def __init__(self, message: str, *inside: str | int) -> None:
        super().__init__(message)
        self.inside = inside


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """`; did you mean modes?`, or all that there are where nothing is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"


def text(value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise WrongValueError(f"a text is wanted, not {_shown(value)}")
    return value


def texts(value: object) -> tuple[str, ...]:
    """A list of texts."""
    return _each(value, text)


def flag(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise WrongValueError(f"true or false is wanted, not {_shown(value)}")
    return value


def whole(least: int) -> Reading:
    """A whole number from `least` up."""

    def reading(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise WrongValueError(f"a whole number from {least} up is wanted, not {_shown(value)}")
        return value

    return reading


def positive(value: object) -> float:
    """A number above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise WrongValueError(f"a number above 0 is wanted, not {_shown(value)}")
    return float(value)


def one_of(*known: str) -> Reading:
    """One of some texts."""

    def reading(value: object) -> str:
        if not isinstance(value, str) or value not in known:
            hint = did_you_mean(value, known) if isinstance(value, str) else f"; there are {', '.join(known)}"
            raise WrongValueError(f"{_shown(value)} is not known{hint}")
        return value

    return reading


def one_of_each(*known: str) -> Reading:
    """A list of some texts, each once."""
    reading = one_of(*known)
    return lambda value: _each(value, reading)


def devices(value: object) -> tuple[str, ...]:
    """A list of devices."""

    def reading(item: object) -> str:
        if not isinstance(item, str) or not _DEVICE.match(item):
            raise WrongValueError(f"{_shown(item)} is no device: auto, cpu, cuda, cuda:1, xpu, mps")
        return item

    return _each(value, reading)


def compile_modes(value: object) -> tuple[str | None, ...]:
    """A list of `false` (eager, None), `true` (the default mode) and modes of `torch.compile`."""

    def reading(item: object) -> str | None:
        if isinstance(item, bool):
            return "default" if item else None
        return cast("str", one_of(*_COMPILE)(item))

    return _each(value, reading)


def batches(value: object) -> dict[Mode, BatchChoice]:
    """A number, a list of them or `"tune"`, for both modes; or a table of these by mode."""
    if not isinstance(value, dict):
        choice = _batch(value)
        return dict.fromkeys(_MODES, choice)
    chosen: dict[Mode, BatchChoice] = {}
    for mode, item in cast("dict[str, object]", value).items():
        if mode not in _MODES:
            raise WrongValueError(f"{mode!r} is no mode{did_you_mean(mode, _MODES)}", mode)
        try:
            chosen[mode] = _batch(item)
        except WrongValueError as error:
            raise WrongValueError(str(error), mode, *error.inside) from None
    if not chosen:
        raise WrongValueError("the table is empty")
    return chosen


def _batch(value: object) -> BatchChoice:
    if value == "tune":
        return "tune"
    if isinstance(value, str):
        raise WrongValueError(f'numbers or "tune" are wanted, not {_shown(value)}')
    return _each(cast("object", value) if isinstance(value, list) else [value], whole(1))


def _each(value: object, reading: Reading) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise WrongValueError(f"a list is wanted, not {_shown(value)}: write [{_written(value)}]")
    if not value:
        raise WrongValueError("the list is empty")
    found: list[Any] = []
    for number, item in enumerate(cast("list[object]", value)):
        try:
            read = reading(item)
        except WrongValueError as error:
            raise WrongValueError(str(error), number, *error.inside) from None
        if read in found:
            raise WrongValueError(f"{_shown(item)} is named twice", number)
        found.append(read)
    return tuple(found)


def _shown(value: object) -> str:
    if isinstance(value, (str, int, float)):
        return _written(value)
    return "a list" if isinstance(value, list) else "a table" if isinstance(value, dict) else "a date"


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
