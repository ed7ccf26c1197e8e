"""What rules predict from a recording of a slow program is what its fix wins: on this machine, with this torch.

How near both are is measured by `python benchmarks/real_pairs.py`, and asserted where TORCHDIAG_MEASURE is set: other
programs of a machine change what a step takes. That the fix wins, and that the rule says so, holds anywhere.
"""

import importlib.util
import os
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
def test_a_fix_that_a_rule_asks_for_wins(rule, tmp_path):
    found = outcome(pairs()[rule], tmp_path)
    assert found is not None, f"{rule} says nothing"
    assert 0 <= found.low <= found.predicted <= found.high
    assert found.predicted > 0
    assert found.measured > 0


@pytest.mark.skipif("TORCHDIAG_MEASURE" not in os.environ, reason="TORCHDIAG_MEASURE=1 asks for a quiet machine")
@pytest.mark.parametrize("rule", sorted(pairs()))
def test_the_measured_gain_is_in_the_predicted_range(rule, tmp_path):
    pair = pairs()[rule]
    for _ in range(ATTEMPTS):
        found = outcome(pair, tmp_path)
        assert found is not None, f"{rule} says nothing"
        if found.low - TOLERANCE <= found.measured <= found.high + TOLERANCE:
            return
    pytest.fail(f"{found} at the last of {ATTEMPTS} attempts")
