"""Top-level keys of a trace, decoded on demand."""

import json
from typing import Any, NoReturn


def decode_top_level(raw: dict[str, bytes]) -> dict[str, Any]:
    """The decoded values; one that is no valid JSON is left out."""
    decoded: dict[str, Any] = {}
    for key, text in raw.items():
        try:
            decoded[key] = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            continue
    return decoded


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")
