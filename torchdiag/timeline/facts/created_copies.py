"""Copies of tensors that the program made on the host just before: by a factory, or from Python values."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.batch_copies import batch_copies
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import Inputs, Shape, elements, inputs
from torchdiag.timeline.facts.nesting import Nesting, nesting, operators
from torchdiag.timeline.facts.operator_order import OperatorOrder, operator_order

Rows = NDArray[np.int64]

FACTORIES = frozenset(
    f"aten::{name}"
    for name in (
        "arange",
        "eye",
        "full",
        "linspace",
        "logspace",
        "ones",
        "rand",
        "randint",
        "randn",
        "randperm",
        "zeros",
    )
)
"""Operators that make a tensor of a given size."""
FILLS = frozenset(f"aten::{name}" for name in ("bernoulli_", "exponential_", "normal_", "random_", "uniform_"))
"""Operators that fill a tensor with random numbers."""
SIZE = re.compile(r"[0-9]{1,18}")
NEAR = 3
"""Operators that may lie between a factory and the copy: a reshape, a cast, an arithmetic one."""


@dataclass(frozen=True, eq=False)
class CreatedCopies:
    """What made the tensors that the copies of `batch_copies(facts)` bring, one value a copy.

    `top`: the outermost operator of the copy, -1. `factory`: the operator that made a tensor of as many elements on the
    host shortly before, -1. `from_python`: whether `torch.tensor(...)` or its like made it from Python values.
    """

    top: Rows
    factory: Rows
    from_python: NDArray[np.bool_]


def created_copies(facts: Facts) -> CreatedCopies:
    """What made the tensors that are copied to the device."""
    table, order = facts.get(batch_copies).copies, facts.get(operator_order)
    top = order.around(table.call)
    beside = {distance: order.neighbour(top, distance) for distance in (-2, -1, 1, 2)}
    lifted, detached = (_mask(facts, name) for name in ("aten::lift_fresh", "aten::detach_"))
    after = _at(lifted, beside[1]) & _at(detached, beside[2])
    before = _at(lifted, beside[-2]) & _at(detached, beside[-1])
    return CreatedCopies(top, _factories(facts, order, top), (top >= 0) & (after | before))


def _mask(facts: Facts, *names: str) -> NDArray[np.bool_]:
    return facts.get(nesting).mask(operators(facts.trace, *names))


def _at(mask: NDArray[np.bool_], rows: Rows) -> NDArray[np.bool_]:
    return (rows >= 0) & mask[rows]


def _factories(facts: Facts, order: OperatorOrder, top: Rows) -> Rows:
    """int64[k]: the last factory on the host before each copy that made as many elements, -1."""
    found = np.full(len(top), -1, np.int64)
    tree, known = facts.get(nesting), facts.get(inputs)
    if not known.recorded:
        return found
    makes = _mask(facts, *FACTORIES, *FILLS)
    on_device = np.zeros(len(facts.trace), np.bool_)
    launches = facts.partition.activities.launch
    around = order.around(launches[launches >= 0])
    on_device[around[around >= 0]] = True
    sized = _Sizes(tree, known, order, makes)
    for distance in range(NEAR + 1, 0, -1):  # the nearest one decides
        before = order.neighbour(top, -distance)
        for index in np.flatnonzero(_at(makes & ~on_device, before)).tolist():
            wanted = known.dims(int(top[index]))[:1]
            if wanted and sized.made(int(before[index])) == elements(wanted[0]):
                found[index] = before[index]
    return found


class _Sizes:
    """How many elements factories make: told by the tensor they fill, or by the memory they ask for."""

    def __init__(self, tree: Nesting, known: Inputs, order: OperatorOrder, makes: NDArray[np.bool_]) -> None:
        self._known, self._order = known, order
        asked = operators(tree.trace, "aten::empty", "aten::resize_")
        asked = asked[np.argsort(tree.trace.ts_ns[asked], kind="stable")]
        owner = order.around(asked)
        told = _at(makes, owner)
        self._asked = dict(zip(owner[told].tolist(), asked[told].tolist(), strict=True))

    def made(self, factory: int) -> int:
        """Elements of what the factory makes, -1 where it is not told."""
        if self._order.name(factory) in FILLS:
            return next((elements(shape) for shape in self._known.dims(factory)[:1]), -1)
        asked = self._asked.get(factory, -1)
        if asked < 0:
            return -1
        values = self._known.concrete(asked)
        index = 1 if self._order.name(asked) == "aten::resize_" else 0
        shape = _shape(values[index]) if len(values) > index else None
        return -1 if shape is None else elements(shape)


def _shape(text: str) -> Shape | None:
    """The sizes in `[8, 4]`; None for anything else."""
    parts = text.strip("[]").split(",") if text.startswith("[") and text.endswith("]") else ["no"]
    if parts == [""]:
        return ()
    return tuple(int(part) for part in parts) if all(SIZE.fullmatch(part.strip()) for part in parts) else None
