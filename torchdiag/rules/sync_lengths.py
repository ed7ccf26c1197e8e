"""Lengths of sequences are fetched from the device for an operator that needs them on the host.

## What it finds
Lengths on the device that go to `pack_padded_sequence`, `ctc_loss` or, as `max_seqlen`, to attention over sequences of
varying lengths.

## Why it is slow
These operators plan their work on the host. Fetching the lengths waits for everything queued before, although the host
knew them when it put the batch together.

## How it is detected
Waits inside `pack_padded_sequence` or `aten::ctc_loss`; a copy to the host within ten operators before
`aten::_pack_padded_sequence` or `aten::_ctc_loss`; or the read of a maximum soon before an operator whose name holds
`varlen`; at one line in at least 80 % of the steady steps. The gain is the step replayed without these waits.

## When it does not matter
Lengths on the CPU are taken as they are; nothing waits.

## How to fix it
Before:

```python
packed = pack_padded_sequence(x, lengths.cuda(), batch_first=True)
```

After:

```python
packed = pack_padded_sequence(x, lengths, batch_first=True)  # lengths as the loader gave them, on the CPU
```

## References
- pytorch/pytorch#43227: since 1.7 packing insists on lengths on the CPU, so that callers fetch them
"""

from collections.abc import Iterator

from torchdiag.findings.rule import Family, Need, Rule
from torchdiag.findings.suspect import Suspect
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.wait_reasons import Reason
from torchdiag.timeline.facts.waiting_lines import waiting_lines


def check(facts: Facts) -> Iterator[Suspect]:
    """One suspect a line that fetches lengths from the device."""
    for line in waiting_lines(facts, Reason.LENGTHS):
        yield Suspect(
            title=f"Fetching lengths from the device makes the host wait {line.often}{line.at}",
            rows=line.waits.row,
            where=line.where,
            change=Change(unblocked=line.waits.calls),
            fix="Let the collate function return the lengths (and their maximum) on the CPU as well, and pass "
            f"those{line.at}.",
            reason="the operator needs the lengths on the host",
        )


RULE = Rule("sync-lengths", Family.SYNC, check, frozenset({Need.DEVICE}))
