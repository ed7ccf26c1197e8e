"""Which steps tell how a program runs once it is warm, and how long they take."""

import numpy as np
import pytest
from hand import trace
from written import Event, call, kernel, mark, operator

from torchdiag.timeline.facts.cold_start import ColdStart, cold_start
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.idle import gpu_busy, idle
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.span import span_ns
from torchdiag.timeline.facts.steady import Steady, steady
from torchdiag.timeline.facts.training import training
from torchdiag.timeline.result import Cause

MS = 1_000_000
STEP = 10 * MS
LOAD = "cuModuleLoadData"


def facts(*lengths_ms: int, more: tuple[Event, ...] = (), took: int = 2 * MS, host: str | None = None) -> Facts:
    """Steps one after the other; each launches a kernel when it begins."""
    events, at = list(more), 0
    for number, length in enumerate(lengths_ms):
        launch = number + 1
        events += [mark(number, at, length * MS), call(at + MS, MS // 10, launch), kernel(at + 2 * MS, took, launch)]
        events += [operator(at + MS // 2, MS, host)] if host else []
        at += length * MS
    return Facts.of(trace(*events))


def times(*lengths_ms: int, more: tuple[Event, ...] = (), took: int = 2 * MS) -> Steady:
    return facts(*lengths_ms, more=more, took=took).get(steady)


def test_steps_of_equal_length_all_count():
    found = times(10, 10, 10)
    assert found.number.tolist() == [0, 1, 2] and len(found) == 3
    assert found.start_ns.tolist() == [0, STEP, 2 * STEP] and found.end_ns.tolist() == [STEP, 2 * STEP, 3 * STEP]
    assert found.step_ns == STEP and found.total_ns == 3 * STEP
    assert not found.whole and not found.cold


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [
        pytest.param((16, 10, 10), [1, 2], id="more than half as long again"),
        pytest.param((15, 10, 10), [0, 1, 2], id="not much longer"),
        pytest.param((10, 10, 30), [0, 1, 2], id="a later long one happens again"),
        pytest.param((30,), [0], id="nothing to compare with"),
        pytest.param((5, 10, 10), [0, 1, 2], id="a short one"),
    ],
)
def test_a_first_step_that_takes_far_longer_warms_up(lengths: tuple[int, ...], kept: list[int]):
    assert times(*lengths).number.tolist() == kept


@pytest.mark.parametrize(("load_ms", "kept"), [(1, [0, 1, 2]), (2, [1, 2])])
def test_a_first_step_that_spends_its_time_on_loading_warms_up(load_ms: int, kept: list[int]):
    """More than 15 % of a step of 10 ms."""
    assert times(10, 10, 10, more=(call(4 * MS, load_ms * MS, name=LOAD),)).number.tolist() == kept


def test_without_steps_all_that_the_device_was_watched_for_is_one():
    known = Facts.of(trace(operator(0, STEP), call(MS, MS, 1), kernel(2 * MS, 3 * MS, 1)))
    found = known.get(steady)
    assert found.whole and len(found) == 1 and not found.cold
    window = known.partition.devices[0].window
    assert (found.start_ns[0], found.end_ns[0]) == (window.start_ns, window.end_ns)


def test_without_a_device_all_host_events_are_one_step():
    found = Facts.of(trace(operator(5, 10), operator(50, 20))).get(steady)
    assert found.whole and (found.start_ns.tolist(), found.end_ns.tolist()) == ([5], [70])
    empty = Facts.of(trace()).get(steady)
    assert len(empty) == 1 and empty.total_ns == 1


def repeated(took: int) -> Facts:
    """Eight rounds of five kernels, launched within 10 us each, that take so long each."""
    launches = [call(10_000 * n, 2_000, n + 1) for n in range(40)]
    work = [kernel(20_000 + max(took, 10_000) * n, took, n + 1, name=f"k{n % 5}") for n in range(40)]
    return Facts.of(trace(*launches, *work))


def test_steps_found_by_their_launches_are_used_where_the_device_keeps_up():
    known = repeated(8_000)
    assert known.steps_source == "period" and not known.get(steady).whole
    assert known.get(steady).step_ns == pytest.approx(50_000, rel=0.1)


def test_steps_that_lie_before_what_they_launched_time_the_host_alone_and_are_not_used():
    known = repeated(1_000_000)
    assert known.steps_source == "period" and known.get(steady).whole
    assert known.get(steady).total_ns >= 39_000_000


def test_instants_belong_to_the_step_they_lie_in():
    found = times(10, 10, 10)
    assert found.of(np.array([-1, 0, STEP - 1, STEP, 3 * STEP - 1, 3 * STEP])).tolist() == [-1, 0, 0, 1, 2, -1]
    assert found.per_step(np.array([1, 2, STEP, 9 * STEP])).tolist() == [2, 1, 0]


def test_nearly_every_step_is_most():
    found = times(*[10] * 5)
    inside = np.arange(5) * STEP + MS
    assert found.in_most(inside) and found.in_most(inside[:4]) and not found.in_most(inside[:3])
    assert not found.in_most(np.repeat(inside[:1], 9))


def test_device_work_belongs_to_the_step_that_launched_it():
    """The kernel of each step runs when the next one has begun."""
    events = [item for n in range(3) for item in (mark(n, n * STEP, STEP), call(n * STEP + 9 * MS, MS // 10, n + 1))]
    late = [kernel((n + 1) * STEP + MS, MS, n + 1) for n in range(3)]
    known = Facts.of(trace(*events, *late))
    rows = np.flatnonzero([known.trace.names[code] == "gemm" for code in known.trace.name])
    assert known.get(steady).rows(known, rows).tolist() == rows.tolist()
    assert known.get(kernels).step.tolist() == [0, 1, 2]


def test_a_host_that_runs_ahead_is_timed_by_its_device():
    """Steps of 10 ms on the host, whose kernels take 30 ms one after the other."""
    events: list[Event] = []
    for number in range(4):
        start = number * STEP
        events += [mark(number, start, STEP), call(start + MS, MS // 10, number + 1)]
        events.append(kernel(2 * MS + number * 30 * MS, 30 * MS, number + 1))
    known = Facts.of(trace(*events))
    found = known.get(steady)
    assert found.over_ns.tolist() == [32 * MS, 62 * MS, 92 * MS, 122 * MS]
    assert found.begun_ns.tolist() == [0, 32 * MS, 62 * MS, 92 * MS]
    assert found.end_ns.tolist() == [STEP, 2 * STEP, 3 * STEP, 4 * STEP]
    assert known.get(span_ns) == 122 * MS
    assert known.get(gpu_busy) == pytest.approx(120 / 122)


def test_idle_time_and_busy_share_add_up():
    known = facts(10, 10, 10)
    spare = known.get(idle)
    # The first step has 2 ms before its kernel; the device is watched from there to the end of the last kernel.
    assert known.get(gpu_busy) == pytest.approx(1 - spare.total_ns() / (3 * STEP))
    assert sum(spare.total_ns(cause) for cause in Cause) == spare.total_ns() == spare.length_ns.sum()
    assert set(spare.step.tolist()) <= {0, 1, 2} and spare.devices == 1


def test_busy_is_unknown_without_a_device():
    assert Facts.of(trace(operator(0, 10))).get(gpu_busy) is None
    assert Facts.of(trace(operator(0, 10))).get(idle).total_ns() == 0


def cold(*lengths_ms: int, more: tuple[Event, ...] = ()) -> ColdStart:
    return facts(*lengths_ms, more=more).get(cold_start)


def test_a_program_that_loads_all_the_time_is_cold():
    found = cold(10, more=(call(3 * MS, 6 * MS, name=LOAD),))
    assert found.cold and found.share == pytest.approx(0.6)


def test_a_program_that_loads_in_its_first_step_only_is_warm_afterwards():
    found = cold(20, 10, 10, more=(call(4 * MS, 12 * MS, name=LOAD),))
    assert not found.cold and found.share == 0 and len(found.rows) == 1


def test_a_program_without_loading_is_warm():
    found = cold(10, 10)
    assert not found.cold and found.share == found.of_recording == 0 and not found.mostly


@pytest.mark.parametrize(
    ("name", "trains"),
    [
        ("autograd::engine::evaluate_function: AddmmBackward0", True),
        ("aten::addmm", False),
        ("Optimizer.step#AdamW.step", True),
    ],
)
def test_a_backward_pass_or_an_optimizer_is_training(name: str, trains: bool):
    assert facts(10, 10, host=name).get(training) is trains
