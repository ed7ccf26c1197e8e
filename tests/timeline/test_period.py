"""The period of a kernel sequence, and the absence of one."""

import numpy as np
import pytest
from hand import trace
from written import call, kernel

from torchdiag.timeline import period
from torchdiag.timeline.activity import collect


def sequence(*names, graph=False):
    """A trace that launches kernels of the given names, 100 ns apart."""
    events = [call(0, 50, 1, name="cudaGraphLaunch")] if graph else []
    for number, name in enumerate(names):
        correlation = 1 if graph else number + 1
        if not graph:
            events.append(call(100 * number, 5, correlation))
        events.append(kernel(100 * number + 20, 50, correlation, name=name))
    data = trace(*events)
    return period.periods(data, collect(data)[0])


STEP = ("embed", *["mm", "add", "relu"] * 4, "loss", *["mm", "mul"] * 4, "sgd")


def spans(starts, end):
    return [(100 * one, 100 * other) for one, other in zip(starts, [*starts[1:], None], strict=True) if other] + [
        (100 * starts[-1], end)
    ]


def test_a_repeating_sequence_is_cut_at_its_repetitions():
    length = len(STEP)
    last_call_ends = 100 * (4 * length - 1) + 5
    assert sequence(*STEP * 4) == spans([0, length, 2 * length, 3 * length], last_call_ends)


def test_what_comes_before_the_first_repetition_is_left_out():
    warm_up = ("fill", "rand", "copy", "rand", "fill")
    found = sequence(*warm_up, *STEP * 3)
    assert [start for start, _ in found] == [500 + 100 * len(STEP) * number for number in range(3)]


def test_repetitions_may_differ_a_little():
    longer = (*STEP[:6], "extra", *STEP[6:])
    found = sequence(*STEP, *longer, *STEP, *STEP[:-3], *STEP[-2:])
    starts = [0, len(STEP), len(STEP) + len(longer), 2 * len(STEP) + len(longer)]
    assert [start for start, _ in found] == [100 * start for start in starts]


def test_a_cut_last_repetition_is_left_out():
    found = sequence(*STEP * 3, *STEP[:5])
    assert len(found) == 3
    assert found[-1][1] == 100 * 3 * len(STEP) - 95


def test_the_step_wins_over_the_layers_in_it():
    layer = ("norm", "qkv", "attention", "mm", "norm", "mm", "gelu", "mm")
    step = ("embed", *layer * 6, "head", "sample")
    assert len(sequence(*step * 4)) == 4


def test_two_repetitions_are_no_period():
    assert sequence(*STEP * 2) == []


def test_one_kernel_over_and_over_is_no_period():
    assert sequence(*["mm"] * 50) == []


def test_no_kernels_have_no_period():
    assert sequence() == []


def test_a_step_without_a_kernel_of_its_own_is_found_by_runs_of_kernels():
    step = ("mm", "relu", "mm", "relu", "mm", "mm", "add", "add")
    found = sequence(*step * 6)
    assert len(found) == 6
    assert [start for start, _ in found] == [800 * number for number in range(6)]


def test_long_pieces_of_chance_hold_the_same_kernels_but_not_in_order():
    draw = np.random.default_rng(1).integers(0, 5, 4000)
    draw[::1000] = 9
    assert sequence(*[f"kernel{number}" for number in draw]) == []


@pytest.mark.parametrize("seed", range(5))
def test_chance_has_no_period(seed):
    draw = np.random.default_rng(seed).integers(0, 12, 300)
    assert sequence(*[f"kernel{number}" for number in draw]) == []


def test_a_sequence_that_never_returns_has_no_period():
    assert sequence(*[f"kernel{number}" for number in range(100)]) == []


def test_a_loop_inside_one_graph_launch_is_no_step():
    assert sequence(*STEP * 4, graph=True) == []


def test_a_kernel_without_a_call_counts_at_its_own_time():
    data = trace(*[kernel(100 * number, 50, name=name) for number, name in enumerate(STEP * 3)])
    found = period.periods(data, collect(data)[0])
    assert [start for start, _ in found] == [0, 100 * len(STEP), 200 * len(STEP)]
