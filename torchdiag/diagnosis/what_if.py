"""One question to the replay: how long would a step take without something?"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchdiag.diagnosis.discovery import chosen, rules
from torchdiag.diagnosis.gains import replay
from torchdiag.errors import TorchdiagError
from torchdiag.timeline.causes import causes_of
from torchdiag.timeline.changes import Change
from torchdiag.timeline.facts.blocking import blocking
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.nesting import named, nesting
from torchdiag.timeline.facts.steady import steady
from torchdiag.timeline.host_states import HostStates
from torchdiag.timeline.result import Cause
from torchdiag.trace.columns import NO_TEXT, Trace
from torchdiag.trace.vocabulary import Call, Kind

Rows = NDArray[np.int64]

SYNC, PYTHON = "sync", "python"
LINE = re.compile(r"^(?P<file>.+):(?P<line>\d+)$")
IN_PYTHON = tuple(Cause).index(Cause.PYTHON)


@dataclass(frozen=True, slots=True)
class Answer:
    """`removed` is what was taken away, `count_per_step` how many events of it there were in a steady step; the times
    of such a step are nanoseconds, a mean."""

    removed: tuple[str, ...]
    count_per_step: float
    step_ns: float
    without_ns: float


def what_if(facts: Facts, removed: tuple[str, ...]) -> Answer:
    """The time of a steady step without `sync`, `python`, what a rule accuses (its id), or a line (`train.py:88`).

    Raises TorchdiagError for something of which the trace holds nothing, or that is none of these.
    """
    changes: list[Change] = []
    count = 0
    for name in removed:
        found, number = _changes(facts, name)
        if not number:
            raise TorchdiagError(f"{facts.trace.path}: nothing to take away: {_missing(name)}")
        changes += found
        count += number
    times, engine = facts.get(steady), facts.get(replay)
    before = float(engine.steps_measured_ns[times.number].sum()) / len(times)
    after = float(engine.steps_ns(changes)[times.number].sum()) / len(times)
    return Answer(removed, count / len(times), before, min(after, before))


def _changes(facts: Facts, name: str) -> tuple[list[Change], int]:
    """What taking `name` away changes, and how many events that is."""
    if name == SYNC:
        waits = facts.get(blocking)
        return [Change(unblocked=waits.calls)], len(waits)
    if name == PYTHON:
        pieces = python_pieces(facts)
        return [Change(pieces=pieces)], len(pieces)
    if name in {rule.id for rule in rules()}:
        suspects = [suspect for rule in chosen([name], []) for suspect in rule.check(facts)]
        changes = [suspect.change for suspect in suspects if suspect.change is not None]
        return changes, sum(len(suspect.rows) for suspect in suspects if suspect.change is not None)
    line = LINE.match(name)
    if line is None:
        raise TorchdiagError(
            f"{name!r} is neither sync, python, a rule (`torchdiag rules`) nor a line such as train.py:88"
        )
    rows = facts.get(steady).rows(facts, _at_line(facts.trace, line["file"], int(line["line"])))
    return [without(facts, rows)], len(rows)


def without(facts: Facts, rows: Rows) -> Change:
    """Host events that do not happen, with all that they launch and wait for."""
    tree, waits = facts.get(nesting), facts.get(blocking)
    inside = waits.inside(facts, rows) | tree.mask(rows)[waits.row]
    activities = facts.partition.activities.row[tree.launched_below(rows)]
    return Change(unblocked=waits.part(inside).calls, shortened=rows, removed=activities)


def python_pieces(facts: Facts) -> Rows:
    """int64[k, 3]: pieces of the launching threads in steady steps in which they run Python: track, start, end."""
    trace, times = facts.trace, facts.get(steady)
    launches = np.flatnonzero(trace.call == Call.LAUNCH)
    driver = facts.partition.driver
    tracks = sorted({driver, *trace.track[launches].tolist()} - {-1})
    states = HostStates(trace, tracks, times.start_ns, times.end_ns)
    found: list[Rows] = [np.empty((0, 3), np.int64)]
    for track in tracks:
        pieces = states.pieces(track, times.start_ns, times.end_ns)
        runs = pieces.event >= 0
        python = ~runs if track == driver else np.zeros(len(runs), np.bool_)
        python[runs] = causes_of(trace, pieces.event[runs]) == IN_PYTHON
        here = np.full(np.count_nonzero(python), track, np.int64)
        found.append(np.stack((here, pieces.start_ns[python], pieces.end_ns[python]), axis=1))
    return np.concatenate(found)


def _at_line(trace: Trace, file: str, line: int) -> Rows:
    """Frames of the function that begins at a line, or of what is called from that line."""
    frame = re.compile(rf"(^|[/\\]){re.escape(file)}\({line}\): ")
    functions = named(trace, Kind.PYTHON, lambda name: frame.search(name) is not None)
    column = trace.args.call_from
    place = re.compile(rf"(^|[/\\]){re.escape(file)}:{line}$")
    matches = np.append(trace.texts.codes_where(lambda text: place.search(text) is not None), False)
    called = column.rows[matches[np.where(column.values == NO_TEXT, -1, column.values)]].astype(np.int64)
    return np.union1d(functions, called)


def _missing(name: str) -> str:
    if name == SYNC:
        return "no call of a step waits for a device"
    if name == PYTHON:
        return "no Python runs on a launching thread"
    if LINE.match(name):
        return f"no frame of a step is at {name}, the line where a function begins or is called; that needs stacks"
    return f"the rule {name} accuses nothing whose gain can be replayed"
