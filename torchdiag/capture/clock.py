"""From the recorders' monotonic clock to the wall clock that Kineto writes.

The recorders stamp with `time.perf_counter_ns`, which on Linux is CLOCK_MONOTONIC, because it never steps back.
Kineto (torch 2.4 and later) writes `ts` = wall clock (CLOCK_REALTIME) minus the trace's `baseTimeNanoseconds`, in
microseconds; it gets its wall clock from the processor's counter, by a line through pairs taken at the start and at
the end of the session. The same is done here: pairs of both clocks at both ends of a recording, a line between.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns, time_ns
from typing import Final

now_ns = perf_counter_ns
"""The clock that every recorder stamps with: integer nanoseconds, monotonic, origin unspecified."""

_TRIES: Final = 32
_STEP_NS: Final = 1_000_000
# Below 2**43 us neighbouring doubles are less than 1 ns apart.
_EXACT_IN_A_DOUBLE: Final = 2**43 * 1000


@dataclass(frozen=True, slots=True)
class ClockPair:
    """One instant told by both clocks.

    `monotonic_ns` and `wall_ns` are nanoseconds; they name the same instant to within `uncertainty_ns` (half the time
    that reading the pair took).
    """

    monotonic_ns: int
    wall_ns: int
    uncertainty_ns: int

    @property
    def offset_ns(self) -> int:
        """Wall clock minus monotonic clock, ns."""
        return self.wall_ns - self.monotonic_ns


def read_pair(
    monotonic: Callable[[], int] = now_ns, wall: Callable[[], int] = time_ns, tries: int = _TRIES
) -> ClockPair:
    """Read both clocks as one.

    The wall clock is read between two readings of the monotonic one; of `tries` such readings the tightest counts, so
    that being descheduled in between does no harm.
    """
    best: ClockPair | None = None
    for _ in range(tries):
        before = monotonic()
        told = wall()
        after = monotonic()
        half = (after - before + 1) // 2
        if best is None or half < best.uncertainty_ns:
            best = ClockPair(before + (after - before) // 2, told, half)
    if best is None:
        raise ValueError("tries must be at least 1")
    return best


@dataclass(frozen=True, slots=True)
class ClockMap:
    """The line through a pair taken when a recording began and one taken when it ended."""

    first: ClockPair
    last: ClockPair

    @property
    def stepped(self) -> bool:
        """Whether the wall clock was set (not merely slewed) during the recording: offsets differ by over 1 ms.

        Times are then only good to that difference, here and in Kineto's own trace.
        """
        return abs(self.last.offset_ns - self.first.offset_ns) > _STEP_NS

    def to_wall_ns(self, monotonic_ns: int) -> int:
        """Wall clock ns (since the Unix epoch) of a stamp; exact integer arithmetic, also outside the two pairs."""
        first, last = self.first, self.last
        elapsed = last.monotonic_ns - first.monotonic_ns
        drift = last.offset_ns - first.offset_ns
        since = monotonic_ns - first.monotonic_ns
        if elapsed <= 0:
            return monotonic_ns + first.offset_ns
        # Beyond the ends the slope is not extended: a slew over a short recording says nothing about what follows.
        since = min(max(since, 0), elapsed)
        return monotonic_ns + first.offset_ns + (drift * since + elapsed // 2) // elapsed

    def to_trace_ns(self, monotonic_ns: int, base_ns: int) -> int:
        """Nanoseconds since `base_ns`, the trace's `baseTimeNanoseconds` (0 where the trace has none)."""
        return self.to_wall_ns(monotonic_ns) - base_ns


def microseconds(ns: int) -> float | str:
    """`ns` as the microseconds of a Chrome trace, exact to the nanosecond.

    A number as long as a double tells neighbouring nanoseconds apart (about 101 days), decimal text beyond, which
    Perfetto and this project's reader take as well.
    """
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), 1000)
    text = f"{sign}{whole}.{rest:03d}"
    return float(text) if abs(ns) < _EXACT_IN_A_DOUBLE else text
