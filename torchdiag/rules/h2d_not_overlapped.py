"""The batch is copied in front of the step, while nothing computes.

## What it finds
Large copies to the device that do not block the host and still hold up the step: they run on the stream that
computes.

## Why it is slow
Work on one stream runs in order. The first kernel of the step waits for the whole batch, though the device could have
fetched it while it computed the step before.

## How it is detected
A copy of at least 1 MB that the host does not wait for, on a stream that also runs kernels, with kernels running
during less than half of it, in most steady steps, and with at least 2 % of the step alone on the device. The gain is
the step replayed without these copies, as if they hid completely behind the kernels of the step before.

## When it does not matter
Copies that take less than 2 % of a step are not worth a stream of their own. The link to the host is shared: where it
is busy anyway, a prefetched copy only moves the wait. Copies that the host waits for belong to other rules: make them
asynchronous first.

## How to fix it
Before:

```python
for images, labels in loader:
    images = images.to("cuda", non_blocking=True)
    step(images, labels)
```

After:

```python
side = torch.cuda.Stream()


def prefetch(batches):
    def fetch():
        with torch.cuda.stream(side):
            return [tensor.to("cuda", non_blocking=True) for tensor in next(batches)]

    batch = fetch()
    while batch:
        torch.cuda.current_stream().wait_stream(side)
        for tensor in batch:
            tensor.record_stream(torch.cuda.current_stream())
        yield batch
        batch = fetch()  # call it after the step was launched; ends with StopIteration of the loader
```

## References
- pytorch/tutorials#2983: when copies and computing overlap
"""

from collections.abc import Iterator

from torchdiag.findings.amounts import bytes_text
from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.copy_reasons import Reason, copy_reasons
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import few_places
from torchdiag.timeline.facts.span import span_ns
from torchdiag.timeline.facts.steady import steady

LEAST_SHARE = 0.02
"""Copies that take less of a step are not worth overlapping."""


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line whose copies hold up the step."""
    accused, times = facts.get(copy_reasons).of(Reason.NOT_OVERLAPPED), facts.get(steady)
    for place in few_places(facts, accused.copies.call):
        here = accused.part(place.chosen)
        share = int((here.copies.end_ns - here.copies.start_ns).sum()) / facts.get(span_ns)
        if share < LEAST_SHARE or times.whole:
            continue
        size = bytes_text(float(here.copies.size_bytes.mean()))
        yield Suspect(
            title=f"A copy of {size} to the device runs alone {place.how_often}{place.at}: {share:.0%} of a step",
            rows=here.copies.row,
            where=place.where,
            change=Change(removed=here.copies.row),
            fix=f"Copy the next batch{place.at} on a side stream (torch.cuda.Stream, wait_stream, record_stream) "
            "while the current step runs.",
            reason="large asynchronous copies on the computing stream while nothing computes; assumed to hide "
            "completely behind the step before",
            confidence="medium",
        )


RULE = Rule("h2d-not-overlapped", Family.TRANSFER, check, frozenset({Need.DEVICE, Need.STEPS}))
