"""What is missing or doubtful about the device side of a trace."""

import re

import numpy as np

from torchdiag.timeline.activity import Activities
from torchdiag.timeline.distinct import numbered
from torchdiag.timeline.missing_replays import unseen_launches
from torchdiag.timeline.result import Step
from torchdiag.trace.columns import MISSING, Trace
from torchdiag.trace.quality import CUT_SHORT, Quality
from torchdiag.trace.vocabulary import Call, Kind

MATCH_RATE = 0.98
"""Steps in which fewer launches than this have their work are not to be believed."""

NAMED_STEPS = 3
LINUX_ON_WINDOWS = re.compile(rb"WSL|microsoft-standard", re.IGNORECASE)
WINDOWS_PATH = re.compile(rb'^"[A-Za-z]:[\\/]')
RANGE_PROFILER = "cuda_profiler_range"


def not_recorded(trace: Trace, activities: Activities) -> Quality | None:
    """Launch calls without any device activity, with the likely reason; or no launch calls either."""
    if len(activities):
        return None
    launches = int(np.count_nonzero(trace.call == Call.LAUNCH))
    cut_short = any(note.code in CUT_SHORT for note in trace.quality)
    if not launches:
        what = "What is left of the trace" if cut_short else "The trace"
        return Quality("host-only", f"{what} has no GPU work and no launch calls: it tells of the host alone.", 1)
    if cut_short:
        why = "the trace is cut short, most likely before the GPU's work, which is written after the host's."
    else:
        why = f"the GPU's work was not recorded. {_reason(trace)}"
    return Quality("gpu-not-recorded", f"{launches:,} launch calls but no GPU activity: {why}", launches)


def unlinked(trace: Trace, activities: Activities) -> Quality | None:
    """Device activities whose launch call is not in the trace, by number and by time."""
    alone = activities.launch < 0
    count = int(np.count_nonzero(alone))
    if not count:
        return None
    length = activities.end_ns - activities.start_ns
    time = int(length[alone].sum()) / max(int(length.sum()), 1)
    return Quality(
        "unlinked-gpu-work",
        f"{count:,} of {len(activities):,} GPU activities ({count / len(activities):.1%}, {time:.1%} of their time) "
        "have no launch call in the trace; idle time before them has no cause.",
        count,
    )


def correlation_zero(trace: Trace, activities: Activities) -> Quality | None:
    """Activities that carry correlation 0, which stands for none."""
    count = int(np.count_nonzero(trace.args.correlation.at(activities.row, MISSING) == 0))
    if not count:
        return None
    return Quality(
        "correlation-zero", f"{count:,} GPU activities carry correlation 0, which links them to no call.", count
    )


def launches_without_work(trace: Trace, activities: Activities, steps: tuple[Step, ...]) -> Quality | None:
    """Steps (or the whole trace, without steps) in which too few launch calls have their work."""
    launches = np.flatnonzero(trace.call == Call.LAUNCH)
    if not len(activities) or not len(launches):
        return None
    launches = launches[np.argsort(trace.ts_ns[launches], kind="stable")]
    has_work = np.zeros(len(trace), np.bool_)
    has_work[activities.launch[activities.launch >= 0]] = True
    worked = np.concatenate(([0], np.cumsum(has_work[launches])))
    begins = trace.ts_ns[launches]
    whole = Step("the trace", int(begins[0]), int(begins[-1]) + 1, None, 0, 0, 0, 0, 0)
    low: list[tuple[float, str]] = []
    without = 0
    for step in steps or (whole,):
        first, last = np.searchsorted(begins, [step.start_ns, step.end_ns]).tolist()
        matched = int(worked[last] - worked[first])
        if last > first and matched < MATCH_RATE * (last - first):
            low.append((matched / (last - first), step.name))
            without += last - first - matched
    if not low:
        return None
    named = ", ".join(f"{name} {rate:.1%}" for rate, name in low[:NAMED_STEPS])
    more = f" and {len(low) - NAMED_STEPS:,} more" if len(low) > NAMED_STEPS else ""
    where = "In" if not steps else f"In {len(low):,} of {len(steps):,} steps,"
    what = f"{where} {named}{more}: share of launch calls whose GPU work was recorded; GPU time is a lower bound there."
    return Quality("launches-without-work", what, without)


def replays_without_kernels(trace: Trace, activities: Activities) -> Quality | None:
    """Graph launches that no activity is linked to."""
    count = len(unseen_launches(trace, activities))
    if not count or not len(activities):
        return None
    return Quality(
        "graph-replay-without-kernels",
        f"{count:,} graph launches have none of their kernels in the trace; what the GPU did meanwhile is unknown.",
        count,
    )


def incomplete_replays(trace: Trace, activities: Activities) -> Quality | None:
    """Replays of a graph that hold fewer activities than its fullest replay."""
    graph = trace.args.graph.at(activities.row, MISSING)
    inside = (graph != MISSING) & (graph != 0) & (activities.launch >= 0)
    if not inside.any():
        return None
    launches, launch = numbered(activities.launch[inside])
    graphs, of_activity = numbered(graph[inside])
    replays, replay = numbered(of_activity * len(launches) + launch)
    counts = np.bincount(replay)
    of = replays // len(launches)
    fullest = np.zeros(len(graphs), np.int64)
    np.maximum.at(fullest, of, counts)
    short = counts < fullest[of]
    if not short.any():
        return None
    missing = int((fullest[of] - counts)[short].sum())
    number = int(np.count_nonzero(short))
    return Quality(
        "graph-replay-incomplete",
        f"{number:,} of {len(counts):,} graph replays lack {missing:,} kernels that fuller replays of it have.",
        number,
    )


def overrunning(overruns: int) -> Quality | None:
    """Activities whose recorded end lies far behind the start of the next one on their stream."""
    if not overruns:
        return None
    return Quality(
        "kernel-overruns-successor",
        f"{overruns:,} GPU activities end over 1 ms after the next one on their stream began; they were cut there.",
        overruns,
    )


def _reason(trace: Trace) -> str:
    values = trace.top_level.values()
    if RANGE_PROFILER in set(trace.categories):
        return "Hardware counters were collected (profiler_metrics), which leaves kernels out: profile without them."
    if any(LINUX_ON_WINDOWS.search(value) for value in values):
        return "The machine looks like WSL, where many versions of CUPTI record no GPU timeline."
    if WINDOWS_PATH.search(trace.top_level.get("traceName", b"")) is not None:
        return "On Windows, CUPTI needs its DLL on the path and access to performance counters for all users."
    if not trace.metadata.get("deviceProperties"):
        return "The profiler listed no device: ask for ProfilerActivity.CUDA and check that CUPTI is installed."
    if not np.any(trace.kind == Kind.OVERHEAD) and "cupti_version" not in trace.top_level:
        return (
            "Likely reasons: another profiler held CUPTI, the driver keeps counters for administrators "
            "(NVreg_RestrictProfilingToAdminUsers), or the schedule had no warm-up step."
        )
    return "Likely reasons: another profiler held CUPTI, or the schedule had no warm-up step."
