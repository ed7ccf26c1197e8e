"""Which host rows lie below Python functions or annotations of certain names."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import Nesting, named, nesting
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FramesAround:
    """Events that mark a stretch of a thread: rows of frames and annotations, one of them inside another counts once.

    `rows` int64[m]: the outermost of them, ascending.
    """

    tree: Nesting
    rows: Rows

    @classmethod
    def named(cls, facts: Facts, accepts: Callable[[str], bool], *kinds: Kind) -> "FramesAround":
        """The events of some kinds (frames and annotations if none is given) whose name is accepted."""
        tree = facts.get(nesting)
        wanted = kinds or (Kind.PYTHON, Kind.ANNOTATION)
        found = np.sort(np.concatenate([named(facts.trace, kind, accepts) for kind in wanted]))
        return cls(tree, tree.tops(found))

    def around(self, rows: Rows) -> Mask:
        """bool[k]: which of the host rows lie inside one of the events."""
        return self.tree.below(rows, self.rows) if len(self.rows) else np.zeros(len(rows), np.bool_)
