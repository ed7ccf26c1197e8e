"""The columns of a trace.

One row is one element of `traceEvents`, in the order of the file. What every event has is dense (one value a row);
what some events have is sparse (ascending row numbers and their values). Texts are dictionary-coded: a column holds
small integers, the dictionary holds each distinct text once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from torchdiag._native import lookup
from torchdiag.trace import classify
from torchdiag.trace.absent import MISSING, NO_TEXT
from torchdiag.trace.quality import Quality
from torchdiag.trace.top_level import decode_top_level

T = TypeVar("T", np.int64, np.float64, np.int32)

__all__ = ["MISSING", "NO_TEXT", "Args", "Floats", "Ints", "Sparse", "Strings", "Texts", "Trace", "Tracks"]


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """Distinct texts, decoded one at a time when asked for.

    `offsets` is int64[n + 1]; text `i` is the UTF-8 bytes `blob[offsets[i]:offsets[i + 1]]` (uint8). Bytes that are
    not UTF-8 decode to U+FFFD.
    """

    offsets: NDArray[np.int64]
    blob: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, code: int) -> str:
        if not 0 <= code < len(self):
            raise IndexError(code)
        return self.blob[self.offsets[code] : self.offsets[code + 1]].tobytes().decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return (self[code] for code in range(len(self)))

    def codes_where(self, accepts: Callable[[str], bool]) -> NDArray[np.bool_]:
        """bool[n]: whether each text is accepted; `accepts` runs once a distinct text."""
        return np.fromiter((accepts(text) for text in self), np.bool_, len(self))

    @classmethod
    def of(cls, texts: list[str]) -> "Strings":
        """A dictionary of the given texts, in the given order."""
        encoded = [text.encode("utf-8", "replace") for text in texts]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(piece) for piece in encoded], out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(encoded), np.uint8))


@dataclass(frozen=True, slots=True, eq=False)
class Sparse(Generic[T]):
    """A column that only some rows have: `rows` (uint32, ascending, distinct) and `values`, of equal length."""

    rows: NDArray[np.uint32]
    values: NDArray[T]

    def __len__(self) -> int:
        return len(self.rows)

    def dense(self, row_count: int, missing: float) -> NDArray[T]:
        """One value for each of `row_count` rows, `missing` where the row has none."""
        column = np.full(row_count, missing, self.values.dtype)
        column[self.rows] = self.values
        return column

    def at(self, rows: NDArray[Any], missing: float) -> NDArray[T]:
        """The values at `rows` (any order, repeats allowed), `missing` where the row has none."""
        if not len(self.rows):
            return np.full(len(rows), missing, self.values.dtype)
        return lookup.values_at(self.rows, self.values, rows, np.array([missing], self.values.dtype))


Ints = Sparse[np.int64]
Floats = Sparse[np.float64]
Texts = Sparse[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """The distinct (pid, tid) pairs of a trace; `trace.track` holds indices into both lists.

    A pid or tid is an int where the file has a number (also one written as a string), else the text, else None.
    """

    pids: list[int | str | None]
    tids: list[int | str | None]

    def __len__(self) -> int:
        return len(self.pids)


@dataclass(frozen=True, slots=True, eq=False)
class Args:
    """The arguments of events, one sparse column each; the spellings are in `vocabulary.ARGUMENTS`.

    Text columns hold codes into `Trace.texts`: the unescaped content of a JSON string, or the raw JSON of anything
    else (`[[2, 3], []]`), to be decoded by whoever needs it. Addresses are unsigned 64-bit numbers kept in the bits
    of an int64: view them as uint64.
    """

    correlation: Ints
    external_id: Ints
    stream: Ints
    device: Ints
    python_id: Ints
    python_parent_id: Ints
    python_module_id: Ints
    copied_bytes: Ints
    sequence_number: Ints
    forward_thread: Ints
    event_index: Ints
    registers: Ints
    shared_memory: Ints
    graph: Ints
    graph_node: Ints
    input_elements: Ints
    output_elements: Ints
    group_size: Ints
    rank: Ints
    address: Ints
    memory_bytes: Ints
    total_allocated: Ints
    total_reserved: Ints
    memory_device: Ints
    memory_device_type: Ints
    wait_on_stream: Ints
    wait_on_correlation: Ints
    source_device: Ints
    target_device: Ints
    sort_index: Ints
    occupancy: Floats
    blocks_per_sm: Floats
    warps_per_sm: Floats
    bandwidth: Floats
    grid: Texts
    block: Texts
    copy_kind: Texts
    collective: Texts
    message_dtype: Texts
    input_split: Texts
    output_split: Texts
    process_group: Texts
    process_group_ranks: Texts
    input_dims: Texts
    input_types: Texts
    input_strides: Texts
    concrete_inputs: Texts
    call_stack: Texts
    call_from: Texts
    module_hierarchy: Texts
    kernel_backend: Texts
    kernel_file: Texts
    sync_kind: Texts
    direction: Texts
    metadata_name: Texts
    labels: Texts
    raised_at: Texts
    handled_at: Texts


@dataclass(frozen=True, eq=False)
class Trace:
    """One trace as columns.

    Dense columns, one value a row: `name`, `category` (int32 codes, NO_TEXT for none), `track` (int32 index into
    `tracks`), `phase` (uint8, the character's code, 0 for none), `ts_ns` and `dur_ns` (int64 nanoseconds in the
    trace's own clock, MISSING where absent). A duration may be negative here: judging it is not the reader's work.
    """

    path: str
    names: Strings
    categories: Strings
    texts: Strings
    tracks: Tracks
    name: NDArray[np.int32]
    category: NDArray[np.int32]
    track: NDArray[np.int32]
    phase: NDArray[np.uint8]
    ts_ns: NDArray[np.int64]
    dur_ns: NDArray[np.int64]
    args: Args
    flow_id: Ints
    """The `id` of flow events (phases s, t, f); an id that is no number is a negative code of its own."""
    top_level: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Raw JSON of every top-level key but `traceEvents`; the last one wins where a key is repeated."""
    document_starts: tuple[int, ...] = (0,)
    """First row of each JSON document, where several were written to one file."""
    quality: tuple[Quality, ...] = ()

    def __len__(self) -> int:
        return len(self.name)

    @cached_property
    def kind(self) -> NDArray[np.uint8]:
        """uint8[n]: the `vocabulary.Kind` of each row."""
        return classify.kinds(self)

    @cached_property
    def call(self) -> NDArray[np.uint8]:
        """uint8[n]: the `vocabulary.Call` of each row, `Call.NONE` for what is no runtime call."""
        return classify.calls(self)

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The top-level keys, decoded; a value that is no valid JSON is left out."""
        return decode_top_level(self.top_level)
