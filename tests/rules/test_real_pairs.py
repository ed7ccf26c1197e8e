"""What rules predict from a recording of a slow program is what its fix wins: on this machine, with this torch."""

import importlib.util
from functools import cache

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

from real_pairs import RealPair, outcome, real_pairs

TOLERANCE = 0.2
"""Of the step: recording an operator costs about as much as calling it, and machines are shared."""
ATTEMPTS = 3


@cache
def pairs() -> dict[str, RealPair]:
    return {pair.rule: pair for pair in real_pairs()}


@pytest.mark.slow
@pytest.mark.parametrize("rule", sorted(pairs()))
def test_the_measured_gain_is_in_the_predicted_range(rule, tmp_path, record_property):
    pair = pairs()[rule]
    for _ in range(ATTEMPTS):
        found = outcome(pair, tmp_path)
        assert found is not None, f"{rule} says nothing"
        record_property("outcome", str(found))
        predicted = f"{found.low:.0%} / {found.predicted:.0%} / {found.high:.0%}"
        print(f"{rule}: measured {found.measured:.0%}, predicted {predicted}")
        if found.low - TOLERANCE <= found.measured <= found.high + TOLERANCE:
            return
    pytest.fail(f"{found} at the last of {ATTEMPTS} attempts")
