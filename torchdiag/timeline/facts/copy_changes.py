"""What becomes of a step without some of its copies, or without waiting for them."""

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.copies import Copies
from torchdiag.timeline.facts.copy_reasons import CopyReasons

Rows = NDArray[np.int64]


def waits(table: Copies) -> Rows:
    """The calls that wait for the copies, ascending."""
    return np.union1d(table.call[table.blocks], table.sync[table.sync >= 0])


def without(accused: CopyReasons, *also: Rows) -> Change:
    """The copies are gone, with the operators that made them; `also` are host events that go with them."""
    return Change(
        unblocked=waits(accused.copies),
        shortened=np.unique(np.concatenate([accused.top[accused.top >= 0], *also])).astype(np.int64),
        removed=accused.copies.row,
    )


def asynchronous(accused: CopyReasons, device_scale: float = 1.0) -> Change:
    """The host no longer waits for the copies, and they take `device_scale` of their time."""
    if device_scale == 1:
        return Change(unblocked=waits(accused.copies))
    return Change(unblocked=waits(accused.copies), scaled=accused.copies.row, device_scale=device_scale)
