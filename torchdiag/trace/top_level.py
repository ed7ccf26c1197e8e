"""Top-level keys of a trace, decoded on demand."""

from typing import Any

import msgspec


def decode_top_level(raw: dict[str, bytes]) -> dict[str, Any]:
    """The decoded values; one that is no valid JSON is left out."""
    decoded: dict[str, Any] = {}
    for key, text in raw.items():
        try:
            decoded[key] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            continue
    return decoded
