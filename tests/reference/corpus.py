"""The traces of real runs that lie beside the project, where they do."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reference.reader import parse, text_of

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "traces"
ALL = os.environ.get("TORCHDIAG_CORPUS") == "all"
"""Whether the slow references read every trace, or leave out the few large ones of which a smaller twin is read."""
LARGE_BYTES = 900_000

needs_traces = pytest.mark.skipif(not FOLDER.is_dir(), reason="no folder of real traces beside the project")


def path_of(name: str) -> Path:
    return FOLDER / name


def names() -> list[str]:
    """The traces to compare, by their path in the folder."""
    found = [path for path in sorted(FOLDER.glob("*/*")) if ALL or path.stat().st_size < LARGE_BYTES]
    return [str(path.relative_to(FOLDER)) for path in found]


def parsed_or_skip(name: str) -> tuple[list[Any], dict[str, Any]]:
    """The parsed trace; the test is skipped where the standard library cannot read it."""
    try:
        return parse(text_of(path_of(name)))
    except (json.JSONDecodeError, UnicodeDecodeError, EOFError) as error:
        pytest.skip(f"damaged: {error}")


def text(name: str) -> str:
    return text_of(path_of(name))
