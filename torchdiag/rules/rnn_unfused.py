"""A recurrent network runs cell by cell, or copies its weights in every step.

## What it finds
Loops over `nn.LSTMCell` or `nn.GRUCell`, and recurrent layers whose weights do not lie in one piece, so that they are
gathered on every call.

## Why it is slow
Each time step issues a handful of small operators; a fused layer issues one call for the whole sequence.

## How it is detected
`aten::lstm_cell`, `aten::gru_cell` or `aten::rnn_tanh_cell` at least 20 times a step at one line, without attention or
a choice of tokens after every second one; or, in every step, `aten::_cudnn_rnn_flatten_weight` or at least 4 copies by
`aten::_cudnn_rnn` itself. The gain replays the step with a tenth of the cells' host time and half of their kernels' (at
least with half of the host time alone), or without the gathering.

## When it does not matter
Decoders that need each output for the next input (attention) cannot be fused, and are not reported.

## How to fix it
Before:

```python
for t in range(length):
    h, c = cell(x[:, t], (h, c))
```

After:

```python
out, (h, c) = nn.LSTM(size, hidden, batch_first=True)(x)  # and flatten_parameters() after moving the module
```

## References
- pytorch/pytorch#49900
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.loops import CELLS
from torchdiag.timeline.facts.nesting import nesting, operators
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts

Rows = NDArray[np.int64]

LEAST, LEFT, KERNELS_LEFT = 20, 0.1, 0.5
DECODING = ("aten::_softmax", "aten::bmm", "aten::baddbmm", "aten::scaled_dot_product_attention", "aten::argmax",
            "aten::multinomial", "aten::topk")  # fmt: skip
"""What comes between two cells of a decoder: attention, or the choice of a token."""
WEIGHTS = 4
"""Weights and biases of the smallest layer."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that loops over cells, and one for gathering weights."""
    times, tree, trace = facts.get(steady), facts.get(nesting), facts.trace
    cells = tree.tops(times.rows(facts, operators(trace, *CELLS)))
    for where, rows in facts.get(whereabouts).grouped(cells):
        if len(rows) < LEAST * len(times) or not times.in_most(trace.ts_ns[rows]) or _decodes(facts, rows):
            continue
        at = f" at {where.label}" if where.label else ""
        yield Suspect(
            title=f"A loop{at} runs {len(rows) / len(times):.4g} recurrent cells a step, one after the other",
            rows=rows,
            where=where,
            change=Change(
                shortened=rows,
                host_scale=LEFT,
                scaled=facts.partition.activities.row[tree.launched_below(rows)],
                device_scale=KERNELS_LEFT,
            ),
            cautious=Change(shortened=rows, host_scale=0.5),
            fix=f"Give the whole sequence to nn.LSTM or nn.GRU{at} where no step needs the output of the one before it "
            "outside of the cell.",
            reason="that a fused layer takes a tenth of the cells' host time and half of their kernels' is assumed",
            confidence="medium",
        )
    gathering = times.rows(facts, operators(trace, "aten::_cudnn_rnn_flatten_weight"))
    gathering = gathering if len(gathering) else _copies_of_weights(facts)
    if len(gathering) and times.in_most(trace.ts_ns[gathering]):
        where = facts.get(whereabouts).most(gathering)
        yield Suspect(
            title=f"Recurrent weights are gathered into one piece {len(gathering) / len(times):.3g} times a step",
            rows=gathering,
            where=where,
            change=Change(shortened=gathering, removed=facts.partition.activities.row[tree.launched_below(gathering)]),
            fix="Call flatten_parameters() once after the module was moved, copied or replicated.",
            reason="the gathering repeats in every step",
        )


def _decodes(facts: Facts, cells: Rows) -> bool:
    """Whether every second cell or more comes with what a decoder does between two of them."""
    trace = facts.trace
    start = np.sort(trace.ts_ns[cells])
    _, first, number = np.unique(facts.get(steady).of(start), return_index=True, return_counts=True)
    begun, over = start[first], start[first + number - 1]  # of the loop in each step
    between = trace.ts_ns[operators(trace, *DECODING)]
    place = np.searchsorted(begun, between) - 1
    return bool(np.count_nonzero((place >= 0) & (between < over[place])) >= len(cells) / 2)


def _copies_of_weights(facts: Facts) -> Rows:
    """Rows of the copies that recurrent layers make of their weights where these are not in one piece."""
    tree = facts.get(nesting)
    layers = operators(facts.trace, "aten::_cudnn_rnn")
    copies = tree.children(layers, facts.get(steady).rows(facts, operators(facts.trace, "aten::copy_")))
    owner, number = np.unique(tree.parent[copies], return_counts=True)
    return copies[np.isin(tree.parent[copies], owner[number >= WEIGHTS])]


RULE = Rule("rnn-unfused", Family.LAUNCH, check)
