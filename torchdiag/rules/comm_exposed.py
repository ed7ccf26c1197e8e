"""Collectives run while nothing computes.

## What it finds
Communication between devices that no kernel hides: all-reduces after the backward pass, all-to-alls in front of what
needs them.

## Why it is slow
A device that only waits for data computes nothing. On slow links, or with many devices, this is most of a step.

## How it is detected
Time of communication kernels in steady steps during which no computing kernel runs on the same device, at least 2 %
of the step together, apart from collectives that a more specific rule accuses. What is known by one trace is an upper
bound: the gain expected is that all of it hides, except for the last collective of a step, which nothing can follow.
The least gain is none, as all of it may be waiting for other processes.

## When it does not matter
The last bucket of gradients is always exposed. A process that is alone has nothing to communicate. Whether a
collective was slow or waited for another rank, one trace cannot tell: see comm-straggler.

## How to fix it
Before:

```python
model = DistributedDataParallel(model)
```

After:

```python
model = DistributedDataParallel(model, bucket_cap_mb=100, gradient_as_bucket_view=True)
model.register_comm_hook(None, torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook)
```

Accumulate gradients under `no_sync()`, start collectives earlier (`async_op=True`) and wait later.

## References
- deepspeedai/DeepSpeed#620: communication of about 18 times the backward pass on 128 devices
- NVIDIA/nccl#491
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.collective_reasons import Reason, collective_reasons
from torchdiag.timeline.facts.collectives import Collectives
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.span import span_ns
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import Where, whereabouts

LEAST_SHARE = 0.02
"""Less exposed communication than this share of a step is no finding."""
KINDS = 3
"""So many kinds of collectives are told apart."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a kind of collective that is exposed."""
    table, times = facts.get(collective_reasons).of(Reason.EXPOSED), facts.get(steady)
    if not len(table) or not len(facts.get(kernels).compute()):
        return
    if table.exposed_total_ns(facts) < LEAST_SHARE * facts.get(span_ns):
        return
    last = _last(table)
    totals = {kind: table.part(table.of_kind(kind)).exposed_total_ns(facts) for kind in set(table.kind)}
    for kind in sorted(totals, key=lambda kind: (-totals[kind], kind))[:KINDS]:
        chosen = table.of_kind(kind)
        here, exposed = table.part(chosen), totals[kind]
        if exposed < LEAST_SHARE * facts.get(span_ns):
            continue
        issued = here.host[here.host >= 0]
        where = facts.get(whereabouts).most(issued) if len(issued) else Where()
        at = f" at {where.label}" if where.label else ""
        share = exposed / facts.get(span_ns)
        yield Suspect(
            title=f"{kind or 'communication'} runs with nothing computing for {exposed / len(times) / 1e6:.3g} ms a "
            f"step ({share:.0%} of it, {len(here) / len(times):.3g} collectives){at}",
            rows=here.kernels.row,
            where=where,
            change=Change(removed=here.kernels.row[~last[chosen]]),
            cautious=Change(),
            hopeful=Change(removed=here.kernels.row),
            fix=f"Let {kind or 'the communication'} overlap with computing: start it earlier (async_op=True, smaller "
            "first buckets), communicate less often (no_sync while accumulating) or less (bf16_compress_hook).",
            reason="an upper bound: one trace cannot tell a slow network from waiting for other ranks; the last "
            "collective of a step is expected to stay",
            confidence="medium",
        )


def _last(table: Collectives) -> NDArray[np.bool_]:
    """bool[k]: the collective of each step that ends last."""
    order = np.lexsort((table.kernels.end_ns, table.kernels.step))
    step = table.kernels.step[order]
    last = np.zeros(len(table), np.bool_)
    last[order[np.append(np.diff(step) > 0, True)]] = True
    return last


RULE = Rule("comm-exposed", Family.COMMUNICATION, check, frozenset({Need.DEVICE}))
