"""Copies that move weights, gradients or optimizer state between host and device."""

import re

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.copies import TO_DEVICE, TO_HOST, Copies, copies
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.steady import steady

Mask = NDArray[np.bool_]

MOVERS = re.compile(
    r"torch[/\\]nn[/\\]modules[/\\]module\.py\(\d+\): (_apply|to|cpu|cuda)$"
    r"|accelerate[/\\]hooks\.py\(\d+\): (pre_forward|post_forward|detach_hook)$"
    r"|accelerate[/\\]utils[/\\](modeling|offload)\.py\(\d+\): (set_module_tensor_to_device|__getitem__)$"
    r"|deepspeed[/\\]runtime[/\\]swap_tensor[/\\]"
    r"|fsdp[/\\](_flat_param|_fully_shard[/\\]_fsdp_(param|param_group|collectives))\.py\(\d+\): (?!forward|backward)"
)
"""Functions that move what a module holds; not those that run the module as well."""
SCALAR_BYTES = 64
"""Copies up to this size are no weights."""
TELLING_SIZES = 4
"""Without stacks: so many different sizes that go both ways in a step are the tensors of a module."""
TELLING_BYTES = 1 << 20


def offloaded(facts: Facts) -> Mask:
    """bool[n]: the rows of copies that move a module's tensors between host and device in steady steps.

    Told by the functions that call them; without such, by several sizes of which a step copies as many to the host as
    to the device.
    """
    table = facts.get(copies)
    table = table.part((table.step >= 0) & (table.call >= 0))
    movers = FramesAround.named(facts, lambda name: MOVERS.search(name) is not None)
    mask = np.zeros(len(facts.trace), np.bool_)
    mask[table.row[movers.around(table.call) | _both_ways(facts, table)]] = True
    return mask


def _both_ways(facts: Facts, table: Copies) -> Mask:
    """bool[k]: copies of sizes that go to the device as often as to the host, where they are many."""
    found = np.zeros(len(table), np.bool_)
    large = np.flatnonzero(table.size_bytes > SCALAR_BYTES)
    large = large[np.argsort(table.step[large], kind="stable")]
    borders = np.searchsorted(table.step[large], np.arange(1, len(facts.get(steady))))
    for here in np.split(large, borders):
        inward, outward = (here[table.direction[here] == way] for way in (TO_DEVICE, TO_HOST))
        into, into_often = np.unique(table.size_bytes[inward], return_counts=True)
        out, out_often = np.unique(table.size_bytes[outward], return_counts=True)
        both, first, second = np.intersect1d(into, out, return_indices=True)
        both = both[into_often[first] == out_often[second]]
        if len(both) >= TELLING_SIZES and both.sum() >= TELLING_BYTES:
            found[here[np.isin(table.size_bytes[here], both)]] = True
    return found
