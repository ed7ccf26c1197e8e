"""The batch sizes that `suite tune` found, as a suite file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from torchdiag.history.run_result import write_whole
from torchdiag.suite.folder import SuiteFolder
from torchdiag.suite.outcome import Outcome

TUNED: Final = "tuned.toml"


def write(folder: SuiteFolder) -> Path | None:
    """Write the suite into the folder; None where no size has been found yet. Raises OSError."""
    text = to_toml(folder.plan.description, folder.outcomes())
    if not text:
        return None
    file = folder.path / TUNED
    write_whole(file, text.encode())
    return file


def to_toml(description: str, outcomes: Sequence[Outcome]) -> str:
    """A suite with a run for each model in each setting; empty where nothing was found."""
    lines: list[str] = []
    for outcome in outcomes:
        if outcome.tuned_batch is None:
            continue
        options = outcome.case.options
        said = {
            "model": options.target,
            "modes": [options.mode],
            "tiny_batch" if options.size == "tiny" else "batches": outcome.tuned_batch,
            "devices": [options.device],
            "dtypes": [options.dtype],
            "size": options.size,
            **({} if options.compile is None else {"compile": [options.compile]}),
        }
        # Texts, numbers and lists of JSON are TOML too.
        lines.append(f"  {{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in said.items())} }},")
    return "\n".join([f"description = {json.dumps(description)}", "", "run = [", *lines, "]", ""]) if lines else ""
