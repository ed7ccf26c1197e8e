"""Where checkpoints are written."""

import re

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround

SAVES = re.compile(
    r"torch[/\\](serialization\.py\(\d+\): (save|_save|_legacy_save)$"
    r"|distributed[/\\]checkpoint[/\\]state_dict_saver\.py\(\d+\): \w*save\w*$)"
)
"""The functions that write a checkpoint while the caller waits."""


def saving(facts: Facts) -> FramesAround:
    """The calls that write a checkpoint; known only where the trace has Python stacks."""
    return FramesAround.named(facts, lambda name: SAVES.search(name) is not None)
