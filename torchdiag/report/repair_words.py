"""What a repair did, for a person and for a program."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from torchdiag.trace.quality import Quality
from torchdiag.trace.repair import RepairReport

SCHEMA = 1


def lines(report: RepairReport, notes: Sequence[Quality]) -> Iterator[str]:
    """How many events came through, and a line for each kind of damage."""
    kept = f"{report.kept + report.mended:,} events kept"
    if not (report.mended or report.dropped or notes):
        yield f"{kept}; there was nothing to mend"
        return
    yield f"{kept}, {report.mended:,} of them mended; {report.dropped:,} dropped"
    for note in notes:
        yield f"  {note.code}: {note.message}"


def dumps(trace: str, output: str, report: RepairReport, notes: Sequence[Quality]) -> str:
    """One JSON document, its names stable; `mended` events are among the `kept` ones."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "trace": trace,
        "output": output,
        "events": {"kept": report.kept + report.mended, "mended": report.mended, "dropped": report.dropped},
        "quality": [note.to_dict() for note in notes],
    }
    return json.dumps(document, indent=1)
