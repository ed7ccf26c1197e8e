"""What an operator was called with, decoded when asked for."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.trace.columns import NO_TEXT, Texts, Trace

Shape = tuple[int, ...]
LONGEST_TEXT = 1 << 16
"""Arguments longer than this are not decoded: no operator has them, and a trace may hold anything."""
LARGEST_SIZE = (1 << 63) - 1
"""A tensor has no larger dimension."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The recorded arguments of operators; empty where the trace has none for a row."""

    trace: Trace

    @cached_property
    def recorded(self) -> bool:
        """Whether the trace has shapes at all."""
        return bool(len(self.trace.args.input_dims))

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[k]: equal numbers for rows of equal shapes, -1 where none are recorded."""
        return self.trace.args.input_dims.at(rows, NO_TEXT).astype(np.int64)

    def dims(self, row: int) -> tuple[Shape, ...]:
        """The shape of each argument; () for what is no tensor."""
        return tuple(_shape(item) for item in self._list(self.trace.args.input_dims, row))

    def types(self, row: int) -> tuple[str, ...]:
        """The type of each argument (`float`, `c10::BFloat16`, `Scalar`, "")."""
        return tuple(str(item) for item in self._list(self.trace.args.input_types, row))

    def concrete(self, row: int) -> tuple[str, ...]:
        """The value of each argument that is no tensor; "" for tensors."""
        return tuple(str(item) for item in self._list(self.trace.args.concrete_inputs, row))

    @cached_property
    def _decoded(self) -> dict[int, list[Any]]:
        return {}

    def _list(self, column: Texts, row: int) -> list[Any]:
        code = int(column.at(np.array([row]), NO_TEXT)[0])
        if code == NO_TEXT:
            return []
        if code not in self._decoded:
            self._decoded[code] = _decode(self.trace.texts[code])
        return self._decoded[code]


def inputs(facts: Facts) -> Inputs:
    """The recorded arguments of operators."""
    return Inputs(facts.trace)


def elements(shape: Shape) -> int:
    """How many elements a tensor of the shape has."""
    total = 1
    for size in shape:
        total *= size
    return total


def _decode(text: str) -> list[Any]:
    if len(text) > LONGEST_TEXT:
        return []
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return []
    return cast(list[Any], value) if isinstance(value, list) else []


def _shape(item: object) -> Shape:
    if not isinstance(item, list):
        return ()
    sizes = tuple(size for size in cast(list[object], item) if type(size) is int and 0 <= size <= LARGEST_SIZE)
    return sizes if len(sizes) == len(cast(list[object], item)) else ()
