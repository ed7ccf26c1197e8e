"""A process runs on the wrong side of the machine.

## What it finds
Processes whose threads run on another socket than the one their GPU is attached to: to be suspected where one rank's
launches and copies are slower than those of all others on the same machine.

## Why it is slow
Each launch and each copy crosses the link between the sockets, and so does every access to memory that was allocated on
the other side.

## How it is detected
It is not, from the trace of one rank: launches that are slow by the machine's nature and launches that are slow by
their place look alike. The rule says that it could not be asked, and for what: the traces of all ranks.

## When it does not matter
Machines of one socket, and programs that the device bounds.

## How to fix it
Before:

```console
torchrun --nproc-per-node 8 train.py
```

After:

```console
numactl --cpunodebind=0 --membind=0 python train.py  # the node of the GPU: nvidia-smi topo -m
```

## References
- huggingface/lerobot#4607: 3 to 4 ms of a step of 28
"""

from collections.abc import Iterator

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.facts.facts import Facts


def check(facts: Facts) -> Iterator[Suspect]:
    """Nothing: what it takes is not among the facts of one trace."""
    del facts
    return iter(())


RULE = Rule("numa-affinity", Family.PAUSE, check, frozenset({Need.RANKS}))
