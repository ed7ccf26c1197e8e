"""What optimizers do in the steady steps: the operators of each `Optimizer.step`, and of which kind they are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import Nesting, named, nesting
from torchdiag.timeline.facts.operator_order import operator_order
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]

MARK = "Optimizer.step#"
UPDATES = tuple(
    f"aten::{name}" for name in ("addcdiv_", "add_", "sub_", "lerp_", "mul_", "addcmul_", "sqrt", "div_", "div", "add")
)
"""What optimizers that go parameter by parameter call on each."""
OFTEN = 4
"""What is called on each parameter is called at least a quarter as often as what is called most."""


@dataclass(frozen=True, eq=False)
class OptimizerRuns:
    """Steps of optimizers, outside of whatever a closure computes.

    `row` int64[k]: annotations, ascending, without those that hold a backward pass (a closure: its operators are not
    the optimizer's). `top` int64[m]: the outermost `aten::` operators in them, with `run` int64[m] telling in which.
    """

    trace: Trace
    tree: Nesting
    row: Rows
    top: Rows
    run: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def name(self) -> str:
        """The optimizer's class, that of the first run."""
        text = self.trace.names[int(self.trace.name[self.row[0]])] if len(self) else ""
        return text.removeprefix(MARK).removesuffix(".step") or "optimizer"

    @property
    def first(self) -> Rows:
        """The first operator of each run, the run itself where it has none: what tells the place in old traces."""
        first = self.row.copy()
        run, at = np.unique(self.run, return_index=True)
        first[run] = self.top[at]
        return first

    def part(self, chosen: Rows) -> "OptimizerRuns":
        """Some of the runs, by number, ascending."""
        number = np.full(len(self.row), -1, np.int64)
        number[chosen] = np.arange(len(chosen))
        kept = number[self.run] >= 0
        return OptimizerRuns(self.trace, self.tree, self.row[chosen], self.top[kept], number[self.run[kept]])

    def count(self, *names: str) -> NDArray[np.int64]:
        """int64[k]: how many of the operators of each run bear one of the names."""
        codes = [code for code in range(len(self.trace.names)) if self.trace.names[code] in names]
        return self._per_run(np.isin(self.trace.name[self.top], codes))

    def counted(self, *prefixes: str) -> NDArray[np.int64]:
        """int64[k]: how many of the operators of each run begin with one of the texts."""
        known = self.trace.names.codes_where(lambda name: name.startswith(prefixes))
        return self._per_run(known[self.trace.name[self.top]])

    @property
    def parameters(self) -> NDArray[np.int64]:
        """int64[k]: about how many parameters each run updates one by one: the rarest of the frequent `UPDATES`."""
        counts = np.array([self.count(name) for name in UPDATES], np.int64)
        frequent = counts * OFTEN >= counts.max(axis=0)
        return np.where(frequent, counts, np.iinfo(np.int64).max).min(axis=0)

    @property
    def multi_tensor(self) -> NDArray[np.bool_]:
        """bool[k]: whether a run launches kernels that work on many tensors, by whatever operator."""
        launched, activities = self.launched, self.tree.activities
        many = self.trace.names.codes_where(lambda name: "multi_tensor" in name.lower())
        calls = activities.launch[launched[many[self.trace.name[activities.row[launched]]]]]
        return np.isin(self.row, self.tree.nearest(calls, self.tree.mask(self.row)))

    @property
    def launched(self) -> Rows:
        """Indices into the activities that the runs launched."""
        return self.tree.launched_below(self.row)

    def _per_run(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(self.run[chosen], minlength=len(self.row)).astype(np.int64)


def optimizer_runs(facts: Facts) -> OptimizerRuns:
    """Steps of optimizers in steady steps."""
    trace, tree = facts.trace, facts.get(nesting)
    rows = facts.get(steady).rows(facts, named(trace, Kind.ANNOTATION, lambda name: name.startswith(MARK)))
    rows = np.sort(tree.tops(rows))
    nodes = named(trace, Kind.OPERATOR, lambda name: name.startswith("autograd::engine::evaluate_function"))
    begun = np.sort(trace.ts_ns[nodes])
    low = np.searchsorted(begun, trace.ts_ns[rows])
    rows = rows[np.searchsorted(begun, trace.ts_ns[rows] + trace.dur_ns[rows]) == low]
    tops = facts.get(operator_order).row
    tops = tops[tree.below(tops, rows)]
    inside = tree.nearest(tops, tree.mask(rows))
    return OptimizerRuns(trace, tree, rows, tops, np.searchsorted(rows, inside))
