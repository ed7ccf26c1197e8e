"""Sharded parameters are gathered only when they are needed.

## What it finds
Fully sharded data parallelism whose all-gathers hold up the layers that need them, since nothing gathers ahead, or
since the whole model is one unit.

## Why it is slow
While the parameters of a layer arrive, the device could compute the layer before. Gathered late, or all at once, they
arrive with nothing to compute.

## How it is detected
All-gathers in steady steps with FSDP's annotations, running with nothing computing, after which a kernel starts that
the host had launched before the gather ended: the device waited for the parameters, not for the host. The first
all-gather of a step is left out, as nothing can gather it ahead; where a step has only that one, its model is one
unit. At least 2 % of the step. The gain is the step replayed without these all-gathers, as if they were hidden.

## When it does not matter
Where the host is late, nothing is said: gathering ahead needs a host that is ahead. Limits on gathered parameters
that save memory are a choice.

## How to fix it
Before:

```python
fully_shard(model)
```

After:

```python
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
for block, following in zip(model.blocks, model.blocks[1:]):
    block.set_modules_to_forward_prefetch([following])
    following.set_modules_to_backward_prefetch([block])
```

FSDP1: `FullyShardedDataParallel(..., forward_prefetch=True, limit_all_gathers=True)`.

## References
- sgl-project/SpecForge#566: a unit a layer and gathering ahead, 0.99 to 0.92 s
- pytorch/pytorch#163153: gathering ahead that does not overlap in a small example
- pytorch/pytorch#94429, pytorch/pytorch#69282, facebookresearch/fairscale#623
"""

from collections.abc import Iterator

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.collective_reasons import SHARDED, Reason, collective_reasons
from torchdiag.timeline.facts.collectives import collectives
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.span import span_ns
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.facts.whereabouts import whereabouts
from torchdiag.trace.vocabulary import Kind

LEAST_SHARE = 0.02


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect for all gathers that hold up the device."""
    times, late = facts.get(steady), facts.get(collective_reasons).of(Reason.GATHERED_LATE)
    exposed = late.exposed_total_ns(facts)
    if exposed < LEAST_SHARE * facts.get(span_ns):
        yield from _one_unit(facts)
        return
    known = late.host[late.host >= 0]
    yield Suspect(
        title=f"{len(late) / len(times):.3g} all-gathers a step hold up the layers they are for, "
        f"{exposed / len(times) / 1e6:.3g} ms with nothing computing",
        rows=late.kernels.row,
        where=facts.get(whereabouts).most(known),
        change=Change(removed=late.kernels.row),
        fix="Gather ahead: set_modules_to_forward_prefetch and set_modules_to_backward_prefetch (FSDP2), or "
        "forward_prefetch=True (FSDP1); shard block by block.",
        reason="the host had launched the next kernel before each of these gathers ended; assumed to hide completely",
        confidence="medium",
    )


def _one_unit(facts: Facts) -> Iterator[Suspect]:
    """A model that is gathered at once, while nothing computes."""
    times, table = facts.get(steady), facts.get(collective_reasons).of(Reason.EXPOSED)
    every = facts.get(collectives)
    sharded = FramesAround.named(facts, lambda name: name.startswith(SHARDED), Kind.OPERATOR, Kind.ANNOTATION)
    gathers = table.part(table.of_kind("allgather"))
    number = int(every.of_kind("allgather").sum())
    exposed = gathers.exposed_total_ns(facts)
    if not len(sharded.rows) or number > 2 * len(times) or exposed < LEAST_SHARE * facts.get(span_ns):
        return
    yield Suspect(
        title=f"All parameters are gathered at once: {exposed / len(times) / 1e6:.3g} ms a step with nothing computing",
        rows=gathers.kernels.row,
        where=facts.get(whereabouts).most(gathers.host[gathers.host >= 0]),
        fix="Shard block by block (fully_shard on each block, then on the model), so that one block is gathered while "
        "the one before computes.",
        reason="one or two all-gathers a step, none of which can hide; what sharding by block wins needs another "
        "recording",
        confidence="medium",
        verdict="cannot-tell",
    )


RULE = Rule("fsdp-no-prefetch", Family.COMMUNICATION, check, frozenset({Need.DEVICE, Need.STEPS}))
