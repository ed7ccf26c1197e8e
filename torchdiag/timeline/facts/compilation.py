"""What `torch.compile` did: compilations, look-ups in its cache, and the compiled regions that ran."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.trace.columns import Trace
from torchdiag.trace.vocabulary import Kind

Rows = NDArray[np.int64]

REGION = re.compile(r"Torch-Compiled Region: (\d{1,9})/(\d{1,9})")
COMPILES = re.compile(r"^(entire_frame_compile|_compile\.compile_inner|compile_attempt_\d+) ?(\(dynamo_timed\))?$")
ATTEMPT = re.compile(r"^(compile_attempt_\d+|backend_compile|OutputGraph\.call_user_compiler|compile_fx)")
SOON_NS = 2_000_000
"""A region begins within this time after the look-up that found it."""


@dataclass(frozen=True, eq=False)
class Compilation:
    """What `torch.compile` did inside steady steps; all rows ascending in time.

    `compiles`: outermost compilations; `attempted` bool, whether each got as far as tracing the function (one that hit
    the limit of recompilations does not). `lookups`: look-ups in the cache of compiled code. `regions`: compiled code
    that ran, with `frame` and `version` int64, the two numbers of its name `frame/version`. `runs` bool[lookups]:
    whether compiled code ran after the look-up, rather than the function itself.
    """

    compiles: Rows
    attempted: NDArray[np.bool_]
    lookups: Rows
    runs: NDArray[np.bool_]
    regions: Rows
    frame: NDArray[np.int64]
    version: NDArray[np.int64]


def compilation(facts: Facts) -> Compilation:
    """What `torch.compile` did inside steady steps."""
    trace, tree, times = facts.trace, facts.get(nesting), facts.get(steady)
    compiles = _in_time(trace, times.rows(facts, named(trace, Kind.OPERATOR, lambda name: bool(COMPILES.match(name)))))
    compiles = tree.tops(compiles)
    tries = named(trace, Kind.OPERATOR, lambda name: bool(ATTEMPT.match(name)))
    tried = tree.nearest(tries, tree.mask(compiles))
    attempted = tree.mask(tried[tried >= 0])[compiles]
    regions = _in_time(trace, times.rows(facts, named(trace, Kind.OPERATOR, lambda name: bool(REGION.match(name)))))
    lookups = (named(trace, kind, "TorchDynamo Cache Lookup".__eq__) for kind in (Kind.OPERATOR, Kind.ANNOTATION))
    lookups = _in_time(trace, times.rows(facts, np.concatenate(list(lookups))))
    frame, version = _numbers(trace, regions)
    return Compilation(compiles, attempted, lookups, _runs(trace, lookups, regions, compiles), regions, frame, version)


def _in_time(trace: Trace, rows: Rows) -> Rows:
    return rows[np.argsort(trace.ts_ns[rows], kind="stable")]


def _numbers(trace: Trace, regions: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    known: dict[int, tuple[int, int]] = {}
    for code in set(trace.name[regions].tolist()):
        found = REGION.match(trace.names[code])
        known[code] = (int(found[1]), int(found[2])) if found else (-1, -1)
    pairs = np.array([known[code] for code in trace.name[regions].tolist()], np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _runs(trace: Trace, lookups: Rows, regions: Rows, compiles: Rows) -> NDArray[np.bool_]:
    """Whether a region begins on the thread of each look-up before the next one; a compilation in between is one."""
    runs = np.zeros(len(lookups), np.bool_)
    for track in set(trace.track[lookups].tolist()):
        mine = np.flatnonzero(trace.track[lookups] == track)
        start = trace.ts_ns[lookups[mine]]
        until = np.append(start[1:], np.iinfo(np.int64).max)
        until = np.minimum(until, start + trace.dur_ns[lookups[mine]] + SOON_NS)
        begun = trace.ts_ns[regions[trace.track[regions] == track]]
        built = trace.ts_ns[compiles[trace.track[compiles] == track]]
        for instants in (begun, built):
            runs[mine] |= np.searchsorted(instants, until) > np.searchsorted(instants, start)
    return runs
