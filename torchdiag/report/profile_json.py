"""A run's result as one JSON document: `result.json` in ASCII, so that no character of a target is printed raw."""

import json

import msgspec

from torchdiag.history.run_result import RunResult


def dumps(result: RunResult) -> str:
    """The document; docs/run-folder.md has its schema."""
    return json.dumps(msgspec.to_builtins(result), indent=1)
