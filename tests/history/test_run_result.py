"""What a result says of itself."""

import pytest
import runs

from torchdiag.history.run_result import PassResult

MS = runs.MS


@pytest.mark.parametrize(
    ("samples", "median"), [((), None), ((5,), 5), ((9, 1, 5), 5), ((1, 2, 3, 10), 2), ((4, 8), 6)]
)
def test_the_median_of_a_pass(samples, median):
    assert PassResult(name="timed", step_ns=samples).median_ns == median


def test_times_of_the_device_are_quoted_where_there_are_any():
    done = PassResult(name="timed", step_ns=(1, 1, 1), device_step_ns=(7, 8, 9))
    assert done.median_ns == 8


def test_inflation_is_over_the_timed_pass():
    result = runs.result()
    assert result.inflation("light") == pytest.approx(1.2)
    assert result.inflation("detailed") == pytest.approx(2.0)
    assert runs.result(passes=result.passes[:1]).inflation("light") is None


def test_throughput_needs_a_batch_size():
    assert runs.result().samples_per_s == pytest.approx(20.0)
    assert runs.result(batch_size=None).samples_per_s is None
