"""Repairing a trace named on the command line."""

from torchdiag.cli.new_file import Sink
from torchdiag.report import progress
from torchdiag.trace import repair, source
from torchdiag.trace.quality import QualityLog, UnreadableTraceError


def mend(trace: str, sink: Sink, quality: QualityLog) -> repair.RepairReport:
    """Write the trace to `sink` as valid JSON; progress shows on standard error.

    Raises UnreadableTraceError, which names the trace, when nothing in it can be saved.
    """
    try:
        with progress.reading(trace) as tell:
            return repair.repair(source.chunks(trace, quality=quality, progress=tell), sink, quality=quality)
    except UnreadableTraceError as error:
        if trace in str(error):
            raise
        raise UnreadableTraceError(f"{trace}: {error}") from error
