"""Numbers as a person reads them: times, sizes, counts, and shares that add up."""

from collections.abc import Sequence

_SECOND = 1_000_000_000
_TIME_UNITS = (
    (1, "ns", 1_000),
    (1_000, "µs", 1_000_000),
    (1_000_000, "ms", _SECOND),
    (_SECOND, "s", 1_000 * _SECOND),
    (60 * _SECOND, "min", 100 * 60 * _SECOND),
    (3_600 * _SECOND, "h", 100 * 3_600 * _SECOND),
    (86_400 * _SECOND, "d", None),
)
_SIZE_UNITS = (
    (1, "B", 10**3),
    (10**3, "kB", 10**6),
    (10**6, "MB", 10**9),
    (10**9, "GB", 10**12),
    (10**12, "TB", None),
)
"""Each unit: what it is worth, its name, and where the next takes over."""


def duration(nanoseconds: int) -> str:
    """Three significant digits and a unit: `612 ms`, `4.20 µs`, `0 ns`; minutes, hours and days past 1000 s."""
    return _scaled(nanoseconds, _TIME_UNITS)


def size(byte_count: int) -> str:
    """Three significant digits and a decimal unit: `25.2 MB`."""
    return _scaled(byte_count, _SIZE_UNITS)


def count(number: int) -> str:
    """A whole number with thousands set apart: `73,639`."""
    return f"{number:,}"


def _scaled(number: int, units: Sequence[tuple[int, str, int | None]]) -> str:
    if number < 0:
        return f"-{_scaled(-number, units)}"
    for scale, unit, next_from in units:
        digits = _three_digits(number, scale)
        # 999.6 of one unit rounds to 1000, which is 1.00 of the next.
        if next_from is None or float(digits) * scale < next_from:
            return f"{number if scale == 1 else digits} {unit}"
    raise AssertionError("the last unit has no end")


def _three_digits(number: int, scale: int) -> str:
    value = number / scale
    for decimals, limit in ((2, 10), (1, 100)):
        text = f"{value:.{decimals}f}"
        if float(text) < limit:
            return text
    return f"{value:.0f}"


def apportion(parts: Sequence[int], units: int) -> list[int]:
    """Whole shares of `units` in the proportion of `parts` (none negative), by largest remainder.

    The result sums to `units` exactly, and each share is less than one unit from its exact value. All zero when the
    parts are.
    """
    total = sum(parts)
    if total <= 0:
        return [0] * len(parts)
    shares = [part * units // total for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda index: (-(parts[index] * units % total), index))
    for index in by_remainder[: units - sum(shares)]:
        shares[index] += 1
    return shares


def percent(tenths: int, *, something: bool = False) -> str:
    """A share in tenths of a percent: `38.2 %`; `<0.1 %` where it rounds to nothing but is `something`."""
    if tenths == 0 and something:
        return "<0.1 %"
    return f"{tenths // 10}.{tenths % 10} %"


def rough_percent(part: int, whole: int) -> str:
    """A share for a sentence: `42 %`, `4.2 %`, `under 0.1 %`. Never a round 0 or 100 for what is not."""
    if whole <= 0:
        return "0 %"
    share = 100 * part / whole
    if part in (0, whole):
        return f"{share:.0f} %"
    if share < 0.1:
        return "under 0.1 %"
    if share < 9.95 or share >= 99.5:
        return f"{min(share, 99.9):.1f} %"
    return f"{share:.0f} %"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """`1 step`, `3 steps`, `2 copies`."""
    return f"{count(number)} {singular if number == 1 else plural or singular + 's'}"
