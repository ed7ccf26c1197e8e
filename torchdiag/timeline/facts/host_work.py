"""Work on data that the launching threads do themselves, outside of the loader."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline import frames
from torchdiag.timeline.facts.batch_waits import exposed_ns
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.host_between import host_between
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.operator_order import operator_order
from torchdiag.timeline.facts.round_trips import round_trips
from torchdiag.timeline.facts.saving import saving
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.loader import loader_events
from torchdiag.trace import classify
from torchdiag.trace.vocabulary import Call, Kind

Rows = NDArray[np.int64]

LIBRARIES = re.compile(
    r"(^|[/\\])(PIL|cv2|numpy|scipy|skimage|sklearn|matplotlib|seaborn|plotly|pandas|albumentations|imgaug|imageio|av|decord"
    r"|librosa|soundfile|torchaudio|h5py|zarr|tokenizers|sentencepiece|nltk|spacy|torchvision[/\\](transforms|io|datasets))"
    r"[/\\]|(^|[/\\])transformers[/\\](.*[/\\])?(image_\w+|video_\w+|tokenization_\w+|feature_extraction_\w+)\.py\("
    r"|^<built-in (method|function) .*\b(numpy|cv2|PIL|Imaging\w+|pandas)\b"
)
"""Functions that decode, transform, draw or tokenise."""
FACTORIES = re.compile(
    r"^aten::(rand|zeros|ones|full|empty|arange|linspace|eye|normal|uniform|tril|triu|pin_memory|_pin)"
)
"""Operators that make a tensor: what is made on the host and then moved is a transfer's matter."""
LONG_NS = 50_000
"""Shorter operators that launch nothing are views and the like."""
LINKED = 0.9
"""If fewer of the activities have a known launch, an operator without one proves nothing."""


@dataclass(frozen=True, eq=False)
class HostWork:
    """Frames and operators that work on data on the host, none inside another, by row.

    `exposed_ns` int64[k]: how long the devices idle for each. `early` bool[k]: whether it is told by its place alone,
    between a step's batch and its first launch.
    """

    row: Rows
    exposed_ns: NDArray[np.int64]
    early: NDArray[np.bool_]


def host_work(facts: Facts) -> HostWork:
    """What the launching threads do to data in steady steps while devices idle."""
    trace, tree = facts.trace, facts.get(nesting)
    library = named(trace, Kind.PYTHON, lambda name: LIBRARIES.search(name) is not None)
    library = _launching_nothing(facts, library)
    early = _before_first_launch(facts)
    rows = facts.get(steady).rows(facts, tree.tops(np.union1d(library, early)))
    rows = rows[np.isin(trace.track[rows], np.unique(trace.track[_issued(facts)]))]
    elsewhere = loader_events(trace)
    trips = facts.get(round_trips)
    between = host_between(facts, trips.out, trips.back)
    taken = tree.below(rows, np.union1d(elsewhere, between)) | np.isin(rows, between) | facts.get(saving).around(rows)
    rows = rows[~taken]
    exposed = exposed_ns(facts, rows)
    rows, exposed = rows[exposed > 0], exposed[exposed > 0]
    return HostWork(rows, exposed, ~np.isin(rows, library))


def _issued(facts: Facts) -> Rows:
    """The calls that issue work."""
    return np.flatnonzero(np.isin(facts.trace.call, (Call.LAUNCH, Call.COPY)))


def _launching_nothing(facts: Facts, rows: Rows) -> Rows:
    """The outermost functions around those of the rows that issue nothing, that neither issue nor load anything."""
    trace, tree = facts.trace, facts.get(nesting)
    busy = np.zeros(len(trace), np.bool_)
    climbing = np.union1d(_issued(facts), loader_events(trace))
    while len(climbing):
        busy[climbing] = True
        climbing = np.unique(tree.parent[climbing])
        climbing = climbing[(climbing >= 0) & ~busy[np.maximum(climbing, 0)]]
    calm = (trace.kind == Kind.PYTHON) & ~busy
    found = tree.outermost(rows, calm)
    return np.unique(found[found >= 0])


def _host_operators(facts: Facts) -> Rows:
    """Long outermost operators that make no runtime call, where all work on devices is known by its launch."""
    trace, tree = facts.trace, facts.get(nesting)
    launch = facts.partition.activities.launch
    calls = np.flatnonzero(trace.kind == Kind.RUNTIME)
    if not len(launch) or np.mean(launch >= 0) < LINKED:
        return np.empty(0, np.int64)
    rows = facts.get(operator_order).row
    rows = rows[trace.dur_ns[rows] >= LONG_NS]
    rows = rows[classify.by_name(trace, rows, lambda name: FACTORIES.search(name) is not None) == 0]
    return rows[~np.isin(rows, tree.outermost(calls, tree.mask(rows)))]


def _before_first_launch(facts: Facts) -> Rows:
    """A person's functions, and operators on the host, between the arrival of a step's batch, or its beginning, and its
    first launch."""
    trace, tree, times = facts.trace, facts.get(nesting), facts.get(steady)
    issued = _issued(facts)
    issued = issued[np.argsort(trace.ts_ns[issued], kind="stable")]
    step = times.of(trace.ts_ns[issued])
    number, index = np.unique(step, return_index=True)
    if times.whole or facts.steps_source != "marks":
        return np.empty(0, np.int64)
    rows = np.union1d(named(trace, Kind.PYTHON, frames.is_user), _host_operators(facts))
    loaders = loader_events(trace)
    found: list[Rows] = [np.empty(0, np.int64)]
    for chosen, first in zip(number.tolist(), issued[index].tolist(), strict=True):
        if chosen < 0:
            continue
        start, end, track = int(times.start_ns[chosen]), int(trace.ts_ns[first]), trace.track[first]
        fetched = loaders[(trace.track[loaders] == track) & (trace.ts_ns[loaders] < end)]
        start = max([start, *(trace.ts_ns[fetched] + trace.dur_ns[fetched]).tolist()])
        here = (trace.track[rows] == track) & (trace.ts_ns[rows] >= start)
        here &= trace.ts_ns[rows] + trace.dur_ns[rows] <= end
        found.append(rows[here])
    return tree.tops(np.unique(np.concatenate(found)))
