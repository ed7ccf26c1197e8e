"""What a rule says before anybody has computed what the fix would win."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.whereabouts import Where

Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True, eq=False)
class Suspect:
    """A bug that a rule sees in the steady steps of a trace.

    `title` is one sentence about this very place, with its figures ("`loss.item()` makes the host wait 2 times a
    step"). `rows` int64: the accused events, host events or device activities, of all steady steps (the evidence; one a
    happening, so that their number over the steps is the count a step). `fix`: what to do at this very place.
    `confidence` and the `reason` for it.

    `change` is what the fix takes away, replayed for the gain; None where no gain can be computed. `cautious` and
    `hopeful` are the least and the most it may take away where that rests on an assumption, which `reason` names.
    `verdict` is set where the rule itself knows that there is nothing to win here ("no-gain") or that this trace cannot
    tell ("cannot-tell", with what to record in `reason`); else the gain decides.
    """

    title: str
    rows: NDArray[np.int64]
    fix: str
    reason: str
    where: Where = field(default_factory=Where)
    confidence: Confidence = "high"
    change: Change | None = None
    cautious: Change | None = None
    hopeful: Change | None = None
    verdict: Literal["no-gain", "cannot-tell"] | None = None
