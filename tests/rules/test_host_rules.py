"""Host work that starves a device or fills a processor: what is accused, how much of it, and what must stay silent."""

import pytest
from host_steps import US, Event, facts, launched, names, note, only, op, py

from torchdiag.diagnosis.gains import saved_ns
from torchdiag.rules import (
    cuda_launch_blocking,
    ema_for_loop,
    foreach_slow_path,
    launch_bound_small_kernels,
    optimizer_for_loop,
    optimizer_foreach_host_bound,
    python_loop_small_ops,
    zero_grad_memset,
)
from torchdiag.timeline.facts.facts import Facts

MODULE = "torch/nn/modules/module.py"
WORK = op(9_000, 100, "aten::mm")
TRAIN = py(10, 9_900, "train.py(10): step")


def saved_us(known: Facts, *changes) -> float:
    return saved_ns(known, [change for change in changes if change is not None]) / US


def adam(at: float, parameters: int, *, names_: tuple[str, ...] = ("mul_", "lerp_", "addcdiv_"), us: float = 10):
    """`Optimizer.step` that calls some operators for each parameter."""
    events = [note(at, parameters * len(names_) * us + 20, "Optimizer.step#AdamW.step")]
    for number in range(parameters * len(names_)):
        events.append(op(at + 10 + number * us, us - 2, f"aten::{names_[number % len(names_)]}"))
    return events


def test_an_optimizer_that_goes_parameter_by_parameter_is_told_with_how_many_there_are():
    known = facts(*[[*adam(1_000, 100), WORK]] * 4)
    suspect = only(optimizer_for_loop.RULE, known)
    assert "AdamW.step updates about 100 parameters one by one" in suspect.title
    assert len(suspect.rows) == 4
    assert names(known, suspect.rows) == {"Optimizer.step#AdamW.step"}
    assert "fused=True" in suspect.fix
    # Of 3020 us at least 2 us a parameter are left.
    assert 1_500 < saved_us(known, suspect.change) < 2_820


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(adam(1_000, 100, names_=("_foreach_mul_", "_foreach_lerp_")), id="foreach"),
        pytest.param(adam(1_000, 100, names_=("_fused_adamw_", "add_")), id="fused"),
        pytest.param(adam(1_000, 8), id="few parameters"),
        pytest.param(
            [*adam(1_000, 100), op(1_500, 10, "autograd::engine::evaluate_function: MmBackward0")],
            id="a closure computes the loss inside",
        ),
        pytest.param([item for item in adam(1_000, 100) if "Optimizer" not in item["name"]], id="no optimizer"),
    ],
)
def test_other_optimizers_are_silent(step: list[Event]):
    assert not list(optimizer_for_loop.RULE.check(facts(*[[*step, WORK]] * 4)))


def test_on_a_cpu_an_optimizer_without_a_fused_form_is_silent():
    renamed = [{**item, "name": item["name"].replace("AdamW", "Adamax")} for item in adam(1_000, 100)]
    assert not list(optimizer_for_loop.RULE.check(facts(*[renamed] * 4)))


def foreach_step(host: float, took: float) -> list[Event]:
    return [
        note(1_000, host, "Optimizer.step#SGD.step"),
        *launched(1_010, 1, host - 100, took, "aten::_foreach_add_", kernel_name="multi_tensor_apply_kernel"),
        *launched(9_000, 2, 20, 10, "aten::mm"),
    ]


def test_a_foreach_optimizer_is_told_where_the_host_takes_longer_than_the_device():
    known = facts(*[foreach_step(3_000, 200)] * 4)
    suspect = only(optimizer_foreach_host_bound.RULE, known)
    assert "3 ms for 200 us on the device" in suspect.title
    low, expected, high = (saved_us(known, item) for item in (suspect.cautious, suspect.change, suspect.hopeful))
    assert 0 < low < expected < high < 3_000
    assert not list(optimizer_foreach_host_bound.RULE.check(facts(*[foreach_step(3_000, 1_500)] * 4)))


def test_a_multi_tensor_operator_that_goes_one_by_one_on_a_device_is_told():
    def step(tensors: int) -> list[Event]:
        events = [op(1_000, tensors * 20 + 20, "aten::_foreach_mul_")]
        for number in range(tensors):
            events += launched(1_010 + number * 20, number + 1, 15, 2, "aten::mul_")
        return events

    known = facts(*[step(40)] * 4)
    suspect = only(foreach_slow_path.RULE, known)
    assert "goes through its 40 tensors one by one" in suspect.title
    assert 600 < saved_us(known, suspect.change) < 820
    assert not list(foreach_slow_path.RULE.check(facts(*[step(4)] * 4)))
    on_host = [[op(1_000, 820, "aten::_foreach_mul_"), *(op(1_010 + n * 20, 15, "aten::mul_") for n in range(40))]] * 4
    assert not list(foreach_slow_path.RULE.check(facts(*on_host)))


def test_gradients_filled_with_zeros_are_told_and_dropped_ones_are_not():
    fills = [note(500, 600, "Optimizer.zero_grad#SGD.zero_grad")]
    for number in range(20):
        fills += launched(510 + number * 25, number + 1, 20, 3, "aten::zero_")
    known = facts(*[[*fills, *launched(9_000, 90, 20, 10, "aten::mm")]] * 4)
    suspect = only(zero_grad_memset.RULE, known)
    assert "20 operators" in suspect.title
    assert len(suspect.rows) == 4
    assert suspect.change is not None
    assert len(suspect.change.removed) == 80
    assert saved_us(known, suspect.change) == pytest.approx(580, rel=0.02)  # nine tenths of the time, and the launches
    dropped = [note(500, 100, "Optimizer.zero_grad#SGD.zero_grad"), *launched(9_000, 90, 20, 10, "aten::zero_")]
    assert not list(zero_grad_memset.RULE.check(facts(*[dropped] * 4)))


def repeated(at: float, times: int, *ops: str, us: float = 10, dims: tuple[int, ...] = (64, 64)) -> list[Event]:
    total = times * len(ops)
    return [op(at + n * us, us - 2, f"aten::{ops[n % len(ops)]}", list(dims)) for n in range(total)]


@pytest.mark.parametrize(
    "unit",
    [("mul_", "add_"), ("lerp_",), ("sub", "mul", "sub_"), ("mul", "mul", "add", "copy_"), ("mul_", "mul", "add_")],
)
def test_an_average_of_weights_is_told_however_it_is_written(unit: tuple[str, ...]):
    known = facts(*[[*repeated(1_000, 50, *unit), WORK]] * 4)
    suspect = only(ema_for_loop.RULE, known)
    assert "50 tensors" in suspect.title
    assert len(suspect.rows) == 4
    assert suspect.change is not None
    assert saved_us(known, suspect.change) > 0.5 * 50 * len(unit) * 10


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(repeated(1_000, 10, "mul_", "add_"), id="few tensors"),
        pytest.param(repeated(1_000, 50, "mul_"), id="gradients are scaled"),
        pytest.param(repeated(1_000, 50, "mul_", "add_", dims=()), id="scalars"),
        pytest.param(adam(1_000, 50, names_=("mul_", "add_")), id="the optimizer"),
        pytest.param(
            [op(990, 1_100, "autograd::engine::evaluate_function: X"), *repeated(1_000, 50, "mul_", "add_")],
            id="the backward pass",
        ),
    ],
)
def test_what_looks_like_an_average_is_silent(step: list[Event]):
    assert not list(ema_for_loop.RULE.check(facts(*[[*step, WORK]] * 4)))


def test_an_average_every_so_many_steps_is_silent():
    update = repeated(1_000, 50, "mul_", "add_")
    assert not list(ema_for_loop.RULE.check(facts(*[[WORK], [*update, WORK], [WORK], [WORK], [WORK]])))


def rows_of(times: int, *ops: str) -> list[Event]:
    return [*repeated(1_000, times, *ops), WORK]


def test_a_loop_over_rows_is_told_by_its_operators_alone_or_by_its_function():
    known = facts(*[rows_of(100, "select", "mul", "copy_")] * 4)
    suspect = only(python_loop_small_ops.RULE, known)
    assert "100 rounds" in suspect.title
    assert suspect.confidence == "low"
    assert saved_us(known, suspect.change) == pytest.approx(3_000, rel=0.05)
    assert saved_us(known, suspect.cautious) == pytest.approx(1_500, rel=0.05)
    framed = facts(*[[TRAIN, py(990, 3_020, "pool.py(9): weighted"), *rows_of(100, "select", "mul", "copy_")]] * 4)
    suspect = only(python_loop_small_ops.RULE, framed)
    assert suspect.where.label == "pool.py:9 weighted"
    assert suspect.confidence == "medium"
    assert saved_us(framed, suspect.change) > 2_500


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(rows_of(100, "linear", "relu"), id="layers of a deep network"),
        pytest.param(rows_of(20, "select", "mul", "copy_"), id="a few rounds"),
        pytest.param(rows_of(100, "select", "view"), id="views compute nothing"),
        pytest.param(
            [
                py(990, 3_020, "model.py(5): forward"),
                *(py(1_000 + 30 * n, 9, "nn.Module: Cell_0") for n in range(100)),
                *rows_of(100, "linear", "mul", "add"),
            ],
            id="a loop over modules",
        ),
        pytest.param([TRAIN, *adam(1_000, 100), WORK], id="the optimizer"),
        pytest.param([TRAIN, *rows_of(50, "mul_", "add_")], id="an average of weights"),
    ],
)
def test_what_is_no_loop_over_elements_is_silent(step: list[Event]):
    assert not list(python_loop_small_ops.RULE.check(facts(*[step] * 4)))


def small_kernels(host: float, took: float, often: int = 60) -> list[Event]:
    events: list[Event] = []
    for number in range(often):
        events += launched(100 + number * (host + 5), number + 1, host, took, "aten::mm")
    return events


def test_a_host_that_is_slower_than_the_device_is_launch_bound():
    known = facts(*[small_kernels(140, 5)] * 4)
    suspect = only(launch_bound_small_kernels.RULE, known)
    assert "60 kernels a step (median 5 us)" in suspect.title
    low, expected, high = (saved_us(known, item) for item in (suspect.cautious, suspect.change, suspect.hopeful))
    assert 0 < low < expected < high < 60 * 140


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(small_kernels(20, 140), id="the device is behind"),
        pytest.param(small_kernels(140, 5, often=2), id="few kernels"),
        pytest.param(
            [note(90, 8_800, "Optimizer.step#AdamW.step")]
            + [{**item, "name": item["name"].replace("mm", "_foreach_mul_")} for item in small_kernels(140, 5)],
            id="an optimizer that has a rule of its own",
        ),
    ],
)
def test_what_is_not_launch_bound_is_silent(step: list[Event]):
    assert not list(launch_bound_small_kernels.RULE.check(facts(*[step] * 4)))


def test_launches_that_wait_are_told_and_free_ones_are_not():
    def step(waits: bool) -> list[Event]:
        events: list[Event] = []
        for number in range(30):
            top, launch, work = launched(100 + number * 300, number + 1, 250, 200, "aten::mm")
            events += [
                top,
                launch,
                {**work, "ts": type(work["ts"])(f"{100 + number * 300 + 20}.000")} if waits else work,
            ]
        return events

    known = facts(*[step(True)] * 4)
    suspect = only(cuda_launch_blocking.RULE, known)
    assert "100% of 30 launches a step" in suspect.title
    assert names(known, suspect.rows) == {"cudaLaunchKernel"}
    assert suspect.change is not None
    assert suspect.change.unblocked.tolist() == suspect.rows.tolist()
    assert not list(cuda_launch_blocking.RULE.check(facts(*[step(False)] * 4)))
