"""What was read, and what is to be said about its quality."""

from torchdiag.timeline.result import TraceSummary
from torchdiag.trace.columns import Trace
from torchdiag.trace.faults import negative_durations, other_clocks, out_of_reach, zero_timestamps
from torchdiag.trace.quality import Quality

TORCH_KEYS = ("torch_version", "pytorch_version", "PyTorch Version", "torch")


def summary(trace: Trace, health: list[Quality]) -> TraceSummary:
    """What was read; the quality notes are those of the reader, of the events' times, and `health`."""
    return TraceSummary(
        path=trace.path,
        events=len(trace),
        ranks=ranks(trace),
        torch=torch_version(trace),
        quality=(*trace.quality, *times(trace), *health),
    )


def ranks(trace: Trace) -> tuple[int, ...]:
    """The rank the trace says it is of, if it says so."""
    match trace.metadata.get("distributedInfo"):
        case {"rank": int(rank)}:
            return (rank,)
        case _:
            return ()


def torch_version(trace: Trace) -> str | None:
    """The version of torch, where the trace tells."""
    told = (trace.metadata.get(key) for key in TORCH_KEYS)
    return next((version for version in told if isinstance(version, str)), None)


def times(trace: Trace) -> list[Quality]:
    """Notes on events that were left out because their times cannot be meant."""
    notes: list[Quality] = []
    if count := len(negative_durations(trace)):
        notes.append(Quality("negative-duration", "Events that end before they begin were left out.", count))
    if count := len(zero_timestamps(trace)):
        message = "Events at time 0, far from all others, were left out."
        notes.append(Quality("zero-timestamp", message, count))
    if count := len(other_clocks(trace)):
        message = "Events more than a day away from most others, as when two runs wrote to one file, were left out."
        notes.append(Quality("several-clocks", message, count))
    if count := len(out_of_reach(trace)):
        message = "Events at times beyond what 64 bits of nanoseconds hold were left out."
        notes.append(Quality("integer-overflow", message, count))
    return notes
