"""How steps and stretches of time are written."""

import pytest

from torchdiag.errors import TorchdiagError
from torchdiag.timeline.selection import step_slice, window_bounds

FIRST, LAST = 1_000_000_000, 2_000_000_000


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("2:5", [2, 3, 4]), ("3", [3]), (":4", [0, 1, 2, 3]), ("-2:", [8, 9]), ("-1", [9]), (":", list(range(10)))],
)
def test_steps_are_chosen_like_a_slice(text, chosen):
    assert list(range(10))[step_slice(text)] == chosen


@pytest.mark.parametrize("text", ["", "a", "1:2:3", "1.5", "2-5", "9" * 40])
def test_other_steps_are_refused(text):
    with pytest.raises(TorchdiagError, match="write 2:5"):
        step_slice(text)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("12ms:40ms", (1_012_000_000, 1_040_000_000)),
        ("0.5us:1.5us", (1_000_000_500, 1_000_001_500)),
        ("7ns:8µs", (1_000_000_007, 1_000_008_000)),
        (":1ms", (FIRST, 1_001_000_000)),
        ("0.25s:", (1_250_000_000, LAST)),
        ("1100000000:1200000000", (1_100_000_000, 1_200_000_000)),
        ("1100000000:200ms", (1_100_000_000, 1_200_000_000)),
        (" 1ms : 2ms ", (1_001_000_000, 1_002_000_000)),
    ],
)
def test_windows_count_from_the_first_event_or_by_the_clock(text, bounds):
    assert window_bounds(text, FIRST, LAST) == bounds


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("5ms", "with a colon"),
        ("1ms:2ms:3ms", "with a colon"),
        ("5parsecs:", "is no time"),
        ("-5ms:", "is no time"),
        ("2ms:1ms", "holds no time"),
        ("3s:4s", "outside"),
        ("5:6", "outside"),
    ],
)
def test_other_windows_are_refused(text, told):
    with pytest.raises(TorchdiagError, match=told):
        window_bounds(text, FIRST, LAST)
