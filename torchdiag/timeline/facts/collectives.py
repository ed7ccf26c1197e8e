"""What moves data between devices in steady steps: how much, how long, and how long with nothing computing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import intervals
from torchdiag.timeline.distinct import distinct
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import Inputs, elements, inputs
from torchdiag.timeline.facts.kernels import Kernels, kernels
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.overlap import covered_ns
from torchdiag.trace.columns import NO_TEXT, Texts, Trace
from torchdiag.trace.vocabulary import Kind, Work

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

ELEMENT_BYTES = {
    **dict.fromkeys(("byte", "char", "bool", "uint8", "int8", "unsigned char", "signed char"), 1),
    **dict.fromkeys(("half", "bfloat16", "short", "int16", "float16"), 2),
    **dict.fromkeys(("float", "int", "int32", "float32"), 4),
    **dict.fromkeys(("double", "long", "int64", "float64", "long int"), 8),
}
"""Bytes of an element, by the type's name in lower case; eight-bit floats are told by their `float8`."""
HOST = ("c10d::", "record_param_comms", "nccl:", "rccl:", "c10d_functional::", "_c10d_functional::")
"""How the names of the host events around the launch of a collective start."""
KINDS = (
    "reduce_scatter", "reducescatter", "all_reduce", "allreduce", "all_gather", "allgather", "all_to_all", "alltoall",
    "broadcast", "barrier", "sendrecv", "reduce", "gather", "scatter", "send", "recv",
)  # fmt: skip
"""What is looked for in the name of a collective, first match first; underscores are left out after."""


@dataclass(frozen=True, eq=False)
class Collectives:
    """Activities that communicate, launched in steady steps, one value each in every column.

    `kernels`: the activities, by (device, start). `kind`: `allreduce`, `allgather`, ... or "". `size_bytes` int64[k]:
    the greater of what goes in and what comes out, -1 where it is not told. `dtype`: the element type in lower case or
    "". `ranks` int64[k]: how many take part, -1. `exposed_ns` int64[k]: how long each ran with nothing computing on its
    device. `host` int64[k]: the outermost host event that issues it, else its launch, -1.
    """

    kernels: Kernels
    kind: tuple[str, ...]
    size_bytes: Rows
    dtype: tuple[str, ...]
    ranks: Rows
    exposed_ns: Rows
    host: Rows

    def __len__(self) -> int:
        return len(self.kernels)

    def part(self, chosen: Mask | Rows) -> "Collectives":
        """Some of them."""
        numbers: list[int] = np.arange(len(self))[chosen].tolist()
        return Collectives(
            self.kernels.part(chosen), tuple(self.kind[i] for i in numbers), self.size_bytes[chosen],
            tuple(self.dtype[i] for i in numbers), self.ranks[chosen], self.exposed_ns[chosen], self.host[chosen],
        )  # fmt: skip

    def exposed_total_ns(self, facts: Facts) -> int:
        """How long some of them ran with nothing computing, a mean over the devices; at once counts once."""
        computing, total = facts.get(kernels).compute(), 0
        for device in distinct(self.kernels.device).tolist():
            mine, here = self.kernels.device == device, computing.device == device
            start, end = intervals.union(self.kernels.start_ns[mine], self.kernels.end_ns[mine])
            covered = covered_ns(start, end, computing.start_ns[here], computing.end_ns[here])
            total += int((end - start - covered).sum())
        return total // max(1, len(facts.partition.devices))

    def of_kind(self, *wanted: str) -> Mask:
        """bool[k]: those of some kinds."""
        return np.array([kind in wanted for kind in self.kind], np.bool_)


def collectives(facts: Facts) -> Collectives:
    """What communicates in steady steps."""
    everything = facts.get(kernels)
    trace, told = facts.trace, facts.get(inputs)
    # Copies between devices are no collectives: a person's own code may move tensors.
    found = everything.part((everything.work == Work.COMMUNICATION) & (trace.kind[everything.row] == Kind.KERNEL))
    issued = _issued(facts, found.call)
    columns = (found.row.tolist(), found.operator.tolist(), issued.tolist())
    answers = [_message(trace, told, *rows) for rows in zip(*columns, strict=True)]
    ranks = trace.args.group_size.at(found.row, -1)
    return Collectives(
        kernels=found,
        kind=tuple(kind for kind, _, _ in answers),
        size_bytes=np.array([size for _, size, _ in answers], np.int64),
        dtype=tuple(dtype for _, _, dtype in answers),
        ranks=np.where(ranks < 0, trace.args.group_size.at(np.maximum(found.operator, 0), -1), ranks),
        exposed_ns=_exposed(found, everything.compute()),
        host=_host(facts, found.call),
    )


def kind_of(name: str) -> str:
    """The kind of a collective by any name of it."""
    lower = name.lower()
    found = next((kind for kind in KINDS if kind in lower), "")
    return found.replace("_", "")


def element_bytes(dtype: str) -> int:
    """Bytes of an element, 0 for a type that is not known."""
    short = dtype.lower().removeprefix("c10::").removeprefix("at::")
    return 1 if short.startswith("float8") else ELEMENT_BYTES.get(short, 0)


def _message(trace: Trace, told: Inputs, row: int, operator: int, issued: int) -> tuple[str, int, str]:
    """Kind, bytes (-1) and element type of a collective, by its own arguments or those of the events around it."""
    kind = kind_of(trace.names[int(trace.name[issued if issued >= 0 else row])])
    for one in (row, operator):
        count = max((_value(trace, name, one) for name in ("input_elements", "output_elements")), default=-1)
        dtype = _text(trace, trace.args.message_dtype, one)
        if count >= 0 and dtype:
            kind = kind_of(_text(trace, trace.args.collective, one)) or kind
            return kind, count * element_bytes(dtype) if element_bytes(dtype) else -1, dtype.lower()
    shapes, types = (told.dims(operator)[:1], told.types(operator)[:1]) if operator >= 0 else ((), ())
    if shapes and shapes[0] and types and element_bytes(types[0]):
        return kind, elements(shapes[0]) * element_bytes(types[0]), types[0].lower()
    return kind, -1, ""


def _value(trace: Trace, column: str, row: int) -> int:
    return int(getattr(trace.args, column).at(np.array([row]), -1)[0]) if row >= 0 else -1


def _text(trace: Trace, column: Texts, row: int) -> str:
    code = int(column.at(np.array([row]), NO_TEXT)[0]) if row >= 0 else NO_TEXT
    return trace.texts[code] if code != NO_TEXT else ""


def _exposed(found: Kernels, computing: Kernels) -> Rows:
    exposed = found.dur_ns.copy()
    for device in distinct(found.device).tolist():
        mine, here = np.flatnonzero(found.device == device), computing.device == device
        exposed[mine] -= covered_ns(
            found.start_ns[mine], found.end_ns[mine], computing.start_ns[here], computing.end_ns[here]
        )
    return exposed


def _issued(facts: Facts, call: Rows) -> Rows:
    """int64[k]: the innermost host event around each launch whose name tells the kind of collective, -1."""
    telling = np.zeros(len(facts.trace), np.bool_)
    for kind in (Kind.OPERATOR, Kind.ANNOTATION):
        telling[named(facts.trace, kind, lambda name: name.startswith(HOST) and kind_of(name) != "")] = True
    found, known = np.full(len(call), -1, np.int64), np.flatnonzero(call >= 0)
    found[known] = facts.get(nesting).nearest(call[known], telling)
    return found


def _host(facts: Facts, call: Rows) -> Rows:
    """int64[k]: the outermost host event of a collective around each launch, else the launch."""
    tree, trace = facts.get(nesting), facts.trace
    issuing = np.zeros(len(trace), np.bool_)
    for kind in (Kind.OPERATOR, Kind.ANNOTATION):
        issuing[named(trace, kind, lambda name: name.startswith(HOST))] = True
    found, known = call.copy(), np.flatnonzero(call >= 0)
    around = tree.outermost(call[known], issuing)
    found[known] = np.where(around >= 0, around, call[known])
    return found
