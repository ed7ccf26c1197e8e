"""Which one rule may accuse each collective of the steady steps: the most specific whose signature it bears."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.changes import Change
from torchdiag.timeline.distinct import distinct
from torchdiag.timeline.facts.collectives import Collectives, collectives
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.frames_around import FramesAround
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.micro_steps import micro_steps
from torchdiag.timeline.facts.nesting import operators
from torchdiag.timeline.facts.steady import MOSTLY, steady
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

SEARCH = "torch.distributed.ddp.reducer::search_unused_parameters"
SHARDED = ("FSDP::", "FullyShardedDataParallel.forward", "fsdp::")
SMALL_BYTES = 64 << 10
MANY = 20
"""More small collectives than this in a step are many."""


class Reason(IntEnum):
    """Why a collective is accused: by the first of these that fits."""

    NONE = 0
    UNUSED = 1
    MICRO_STEP = 2
    MANY_SMALL = 3
    GATHERED_LATE = 4
    EXPOSED = 5


@dataclass(frozen=True, eq=False)
class CollectiveReasons:
    """The collectives of the steady steps with the one reason to accuse each (`reason` uint8[k])."""

    collectives: Collectives
    reason: NDArray[np.uint8]

    def of(self, reason: Reason) -> Collectives:
        """Those that are accused for one reason."""
        return self.collectives.part(self.reason == reason)


def collective_reasons(facts: Facts) -> CollectiveReasons:
    """The reason to accuse each collective; none where a process communicates with nobody."""
    table = facts.get(collectives)
    if not len(table) or alone(facts):
        return CollectiveReasons(table, np.zeros(len(table), np.uint8))
    begun = np.where(table.kernels.call >= 0, facts.trace.ts_ns[table.kernels.call], table.kernels.start_ns)
    integers = np.array([dtype in ("int", "int32") for dtype in table.dtype], np.bool_)
    searched = bool(len(operators(facts.trace, SEARCH)))
    small = (table.size_bytes >= 0) & (table.size_bytes < SMALL_BYTES)
    fits = [
        (Reason.UNUSED, searched & integers & table.of_kind("allreduce")),
        (Reason.MICRO_STEP, facts.get(micro_steps).of(begun) & table.of_kind("allreduce")),
        (Reason.MANY_SMALL, small & _many(facts, table, small)),
        (Reason.GATHERED_LATE, _gathered_late(facts, table)),
        (Reason.EXPOSED, table.exposed_ns > 0),
    ]
    reason = np.select([fit for _, fit in fits], [np.uint8(code) for code, _ in fits], np.uint8(Reason.NONE))
    return CollectiveReasons(table, reason)


def without(table: Collectives, *host: Rows) -> Change:
    """The collectives are gone, with the host events that issue them; `host` are more host events that go with them."""
    issued = table.host[table.host >= 0]
    return Change(shortened=np.unique(np.concatenate([issued, *host])).astype(np.int64), removed=table.kernels.row)


def alone(facts: Facts) -> bool:
    """Whether the trace says that its process is the only one."""
    told: Any = facts.trace.metadata.get("distributedInfo")
    return isinstance(told, dict) and cast(dict[str, Any], told).get("world_size") == 1


def _many(facts: Facts, table: Collectives, small: Mask) -> bool:
    """Whether most steps have many collectives, most of them small, and not all of them hidden."""
    steps = len(facts.get(steady))
    often = np.bincount(table.kernels.step[small], minlength=steps)
    told = table.size_bytes[table.size_bytes >= 0]
    if not len(told) or np.median(told) >= SMALL_BYTES or not table.exposed_ns[small].sum():
        return False
    return bool(np.count_nonzero(often > MANY) >= MOSTLY * steps)


def _gathered_late(facts: Facts, table: Collectives) -> Mask:
    """bool[k]: all-gathers of sharded parameters that a kernel waited for which the host had launched in time.

    The first one of a step is left out: nothing could have fetched it ahead.
    """
    late = table.of_kind("allgather") & (table.exposed_ns > 0)
    sharded = FramesAround.named(facts, lambda name: name.startswith(SHARDED), Kind.OPERATOR, Kind.ANNOTATION)
    if not late.any() or not len(sharded.rows):
        return np.zeros(len(table), np.bool_)
    computing = facts.get(kernels).compute()
    computing = computing.part(computing.call >= 0)
    launched = facts.trace.ts_ns[computing.call]
    for device in distinct(table.kernels.device[late]).tolist():
        mine = np.flatnonzero(late & (table.kernels.device == device))
        here = np.flatnonzero(computing.device == device)
        end = table.kernels.end_ns[mine]
        following = np.searchsorted(computing.start_ns[here], end)
        known = following < len(here)
        late[mine] = known
        late[mine[known]] = launched[here[following[known]]] < end[known]
    gathers = np.flatnonzero(table.of_kind("allgather"))
    order = gathers[np.lexsort((table.kernels.start_ns[gathers], table.kernels.step[gathers]))]
    first = order[np.append(True, np.diff(table.kernels.step[order]) > 0)]
    late[first] = False
    return late
