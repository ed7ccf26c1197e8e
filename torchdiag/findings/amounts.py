"""Amounts as a rule writes them into a sentence."""

_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes"))


def bytes_text(amount: float) -> str:
    """`19.3 MB`, decimal units, three digits."""
    size, unit = next((pair for pair in _BYTES if amount >= pair[0]), _BYTES[-1])
    return f"{amount / size:.3g} {unit}" if amount / size < 999.5 else f"{amount / size:.0f} {unit}"


_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))


def time_text(amount_ns: float) -> str:
    """`4.2 ms`, three digits, in ASCII."""
    size, unit = next((pair for pair in _TIMES if amount_ns >= pair[0]), _TIMES[-1])
    return f"{amount_ns / size:.3g} {unit}" if amount_ns / size < 999.5 else f"{amount_ns / size:.0f} {unit}"
