"""Running averages of weights that are updated tensor by tensor, outside of optimizers."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.inputs import inputs
from torchdiag.timeline.facts.nesting import nesting
from torchdiag.timeline.facts.operator_order import operator_order
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]

LETTERS = {
    "aten::mul_": "M",
    "aten::mul": "m",
    "aten::add_": "A",
    "aten::add": "a",
    "aten::sub_": "S",
    "aten::sub": "s",
    "aten::rsub": "s",
    "aten::lerp_": "L",
    "aten::lerp": "l",
    "aten::copy_": "C",
}
VIEWS = frozenset(
    f"aten::{name}" for name in ("detach", "detach_", "alias", "to", "view_as", "is_floating_point", "is_complex")
)
"""What may lie in between and computes nothing."""
UNIT = re.compile(r"(?P<unit>Mm?A|s?m?m?S|mm?aC|lC|L|smA)(?P=unit){15,}")
"""At least 16 times the same few operators, as `average = decay * average + (1 - decay) * weight` is written."""
OWN = re.compile(
    r"^Optimizer\.(step|zero_grad)#|(^|: )torch::autograd::AccumulateGrad$|^autograd::engine::evaluate_fun"
)


@dataclass(frozen=True, eq=False)
class Average:
    """One pass over the averages: `first` and `last` row of its operators, `tensors` how many it updates."""

    first: int
    last: int
    tensors: int


def averages(facts: Facts) -> tuple[Average, ...]:
    """The passes over averages in steady steps, in the order of threads and time."""
    trace, tree, order = facts.trace, facts.get(nesting), facts.get(operator_order)
    rows = facts.get(steady).rows(facts, order.row)
    own = FramesAround.named(facts, lambda name: OWN.search(name) is not None, Kind.ANNOTATION, Kind.OPERATOR)
    rows = rows[~own.around(rows)]
    letter = np.full(len(trace.names), ord("."), np.uint8)
    for code, name in enumerate(trace.names):
        letter[code] = ord(LETTERS.get(name, " " if name in VIEWS else "."))
    found: list[Average] = []
    for track in np.flatnonzero(np.bincount(trace.track[rows], minlength=1)).tolist():
        mine = rows[trace.track[rows] == track]
        mine = mine[letter[trace.name[mine]] != ord(" ")]
        text = letter[trace.name[mine]].tobytes().decode("ascii")
        for match in UNIT.finditer(text):
            members = mine[match.start() : match.end()]
            tensors = len(members) // len(match["unit"])
            if _different(facts, members) and not tree.below(members[:1], members).any():
                found.append(Average(int(members[0]), int(members[-1]), tensors))
    return tuple(found)


def _different(facts: Facts, members: Rows) -> bool:
    """Whether nothing says that all tensors are scalars (counters and losses are averaged, too)."""
    known = facts.get(inputs)
    if not known.recorded:
        return True
    shapes = [known.dims(row)[:1] for row in members[:: max(len(members) // 8, 1)].tolist()]
    return any(shape and shape[0] not in ((), (1,)) for shape in shapes)
