"""Amounts as a rule writes them into a sentence."""

_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes"))


def bytes_text(amount: float) -> str:
    """`19.3 MB`, decimal units, three digits."""
    size, unit = next((pair for pair in _BYTES if amount >= pair[0]), _BYTES[-1])
    return f"{amount / size:.3g} {unit}" if amount / size < 999.5 else f"{amount / size:.0f} {unit}"
