"""DistributedDataParallel looks for unused parameters in every step.

## What it finds
`DistributedDataParallel(..., find_unused_parameters=True)`.

## Why it is slow
After each forward pass the whole autograd graph is walked on the host, and one more all-reduce tells every process
which parameters were used anywhere. Both happen whether or not a parameter is ever unused.

## How it is detected
The reducer's `search_unused_parameters` in most steady steps. The gain is the step replayed without the search,
without the `_DDPSink` that goes with it, and without the all-reduce of the 32-bit integers.

## When it does not matter
Models that truly leave out different modules in different steps need it. Where the same parameters are unused in each
step, freeze them; where the graph never changes, `static_graph=True` does without the search.

## How to fix it
Before:

```python
model = DistributedDataParallel(model, find_unused_parameters=True)
```

After:

```python
model = DistributedDataParallel(model)  # an error in the second step tells which parameters had no gradient
```

## References
- m2lines/Samudra#630: a warning on eight ranks that no parameter was unused
- mosaicml/composer#9: about 5 %
- EvolvingLMMs-Lab/OneVision-Encoder#68
"""

from collections.abc import Iterator

import numpy as np

from torchdiag.findings.rule import Family, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.collective_reasons import SEARCH, Reason, collective_reasons, without
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.nesting import nesting, operators
from torchdiag.timeline.facts.steady import steady

SINKS = ("_DDPSink", "autograd::engine::evaluate_function: _DDPSinkBackward")


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all searches."""
    times, tree = facts.get(steady), facts.get(nesting)
    searches = times.rows(facts, operators(facts.trace, SEARCH))
    sinks = times.rows(facts, tree.tops(operators(facts.trace, *SINKS)))
    told = facts.get(collective_reasons).of(Reason.UNUSED)
    for place in few_places(facts, searches):
        here = searches[place.chosen]
        alone = len(here) == len(searches)
        yield Suspect(
            title=f"DistributedDataParallel searches for unused parameters {place.how_often}{place.at}",
            rows=here,
            where=place.where,
            change=without(told if alone else told.part(np.zeros(len(told), np.bool_)), here, sinks if alone else here),
            fix="Construct DistributedDataParallel with find_unused_parameters=False; if steps really leave modules "
            "out, keep it, and if the graph never changes, pass static_graph=True instead.",
            reason="search_unused_parameters runs in every step; whether some steps leave modules out cannot be seen",
        )


RULE = Rule("ddp-find-unused", Family.COMMUNICATION, check)
