"""What stops the host for nothing: collections, exceptions, checks, walks, copies, logs."""

import numpy as np
import pytest
from host_steps import STEP_US, US, Event, event, facts, launched, only, op, py
from reference.reader import trace_of
from written import mark, parsed

from torchdiag.diagnosis.gains import saved_ns
from torchdiag.findings.rule import Rule
from torchdiag.rules import (
    attr_miss_exception,
    cpu_denormals,
    deepcopy_in_loop,
    ema_for_loop,
    exception_slow_path,
    gil_contention,
    module_tree_walk,
    numa_affinity,
    optimizer_for_loop,
    python_gc_pause,
    python_loop_small_ops,
    python_tracer_attached,
    redundant_validation,
    warning_logging_hot_path,
)
from torchdiag.timeline.facts.facts import Facts

MODULE = "torch/nn/modules/module.py"
WORK = op(9_000, 100, "aten::mm")
TRAIN = py(10, 9_900, "train.py(10): step")


def saved_us(known: Facts, *changes) -> float:
    return saved_ns(known, [change for change in changes if change is not None]) / US


def small_kernels(host: float, took: float, often: int = 60) -> list[Event]:
    events: list[Event] = []
    for number in range(often):
        events += launched(100 + number * (host + 5), number + 1, host, took, "aten::mm")
    return events


def collection(at: float, length: float) -> Event:
    return py(at, length, "Python GC")


def test_collections_are_told_with_what_they_cost_in_a_mean_step():
    known = facts([WORK], [collection(2_000, 5_000), WORK], [WORK], [collection(3_000, 3_000), WORK])
    suspect = only(python_gc_pause.RULE, known)
    assert "2 garbage collections in 2 of 4 steps" in suspect.title
    assert len(suspect.rows) == 2
    assert saved_us(known, suspect.change) == pytest.approx(2_000)


def test_collections_that_torchdiag_recorded_are_time_of_the_thread_they_happened_on():
    track = 1_900_000_000
    told = {
        "ph": "M",
        "name": "thread_name",
        "pid": 100,
        "tid": track,
        "args": {"name": "Garbage collection, thread 1"},
    }
    at = [event("torchdiag", "Python GC generation 2", 12_000 * US, 4_000 * US, (100, track), {})]
    known = facts(*[[WORK]] * 4, more=(told, *at))
    assert saved_us(known, only(python_gc_pause.RULE, known).change) == pytest.approx(1_000)


def test_short_collections_and_those_asked_for_now_and_then_are_silent():
    assert not list(python_gc_pause.RULE.check(facts(*[[collection(2_000, 20), WORK]] * 4)))
    asked = [py(1_990, 4_020, "<built-in function collect>"), collection(2_000, 4_000), WORK]
    assert not list(python_gc_pause.RULE.check(facts([WORK], asked, [WORK], [WORK], [WORK])))
    suspect = only(python_gc_pause.RULE, facts(*[asked] * 4))
    assert "gc.collect()" in suspect.fix


def thrown_steps(each_us: float, often: int, kind: str = "C++ exceptions") -> Facts:
    track = 1_900_000_000
    told = {"ph": "M", "name": "thread_name", "pid": 100, "tid": track, "args": {"name": f"{kind}, thread 1"}}
    args = {"raised at": "train.py:20:fast", "handled at": "train.py:23:step"} if kind.startswith("P") else {}
    thrown = [
        event("torchdiag", "c10::Error", (n * STEP_US + 1_050 + k * 100) * US, round(each_us * US), (100, track), args)
        for n in range(4)
        for k in range(often)
    ]
    step = [*(op(1_000 + k * 100, 90, "quantized::conv2d") for k in range(often)), WORK]
    return facts(*[step] * 4, more=(told, *thrown))


def test_exceptions_of_every_step_are_told_with_the_operators_that_throw_them():
    known = thrown_steps(30, 20)
    suspect = only(exception_slow_path.RULE, known)
    assert "20 C++ exceptions (c10::Error) thrown and caught in a step by quantized::conv2d, 600 us" in suspect.title
    assert len(suspect.rows) == 80
    assert saved_us(known, suspect.change) == pytest.approx(600)
    assert suspect.where.operator == "quantized::conv2d"


def test_operators_that_exceptions_ended_cost_their_time_and_at_most_what_comes_after_them():
    known = thrown_steps(45, 20)  # each operator, of 90 us, ends 5 us before what was thrown after 50 us is caught
    suspect = only(exception_slow_path.RULE, known)
    assert saved_us(known, suspect.cautious) == pytest.approx(20 * 45)
    assert saved_us(known, suspect.change) == pytest.approx(20 * 95)
    assert 20 * 100 <= saved_us(known, suspect.hopeful) <= 20 * 100 + 10  # twice the usual after the last
    assert "1.9 ms" in suspect.title


def test_python_exceptions_cost_much_less_than_they_seem_to_while_they_are_followed():
    known = thrown_steps(60, 60, "Python exceptions")
    handled = only(exception_slow_path.RULE, known)
    assert handled.where.label == "train.py:23 step"
    assert saved_us(known, handled.change) == pytest.approx(60 * 1.3, rel=0.01)
    assert saved_us(known, handled.cautious) == pytest.approx(60 * 0.65, rel=0.01)


def test_a_few_short_exceptions_are_silent():
    assert not list(exception_slow_path.RULE.check(thrown_steps(2, 3)))
    assert not list(exception_slow_path.RULE.check(facts(*[[WORK]] * 4)))


def validated(at: float, before: str = "aten::eq") -> list[Event]:
    return [op(at, 10, before), op(at + 12, 10, "aten::_is_all_true"), op(at + 24, 10, "aten::is_nonzero")]


def test_validation_of_distributions_is_told_with_and_without_stacks():
    known = facts(*[[*validated(1_000), *validated(2_000, "aten::gt"), WORK]] * 4)
    suspect = only(redundant_validation.RULE, known)
    assert "validated twice" in suspect.title or "validated 2 times a step" in suspect.title
    assert saved_us(known, suspect.change) == pytest.approx(2 * 34)
    assert suspect.confidence == "medium"
    frames = [TRAIN, py(990, 60, "torch/distributions/distribution.py(46): __init__"), *validated(1_000), WORK]
    framed = facts(*[frames] * 4)
    suspect = only(redundant_validation.RULE, framed)
    assert suspect.where.label == "train.py:10 step"
    assert suspect.confidence == "high"
    assert saved_us(framed, suspect.change) == pytest.approx(60)


def test_a_condition_of_the_program_is_no_validation():
    own = [op(1_000, 10, "aten::eq"), op(1_012, 10, "aten::all"), op(1_024, 10, "aten::is_nonzero"), WORK]
    assert not list(redundant_validation.RULE.check(facts(*[own] * 4)))


def many(at: float, count: int, us: float, name: str) -> list[Event]:
    return [py(at + n * us, us - 1, name) for n in range(count)]


FRAME_RULES = [
    pytest.param(
        deepcopy_in_loop.RULE,
        [py(990, 1_020, "copy.py(128): deepcopy"), *many(1_000, 100, 10, "copy.py(128): deepcopy")],
        many(1_000, 5, 10, "copy.py(128): deepcopy"),
        1_020,
        id="deepcopy",
    ),
    pytest.param(
        module_tree_walk.RULE,
        [py(990, 1_220, f"{MODULE}(2894): train"), *many(1_000, 120, 10, f"{MODULE}(2894): train")],
        many(1_000, 40, 10, f"{MODULE}(2894): train"),
        1_220,
        id="walk",
    ),
    pytest.param(
        warning_logging_hot_path.RULE,
        many(1_000, 3, 300, "logging/__init__.py(1479): info"),
        many(1_000, 3, 20, "logging/__init__.py(1479): info"),
        897,
        id="logging",
    ),
    pytest.param(
        attr_miss_exception.RULE,
        [
            py(1_000, 500, "wrapper.py(19): __getattr__"),
            py(1_010, 480, f"{MODULE}(3001): __repr__"),
        ],
        many(1_000, 300, 3, f"{MODULE}(1959): __getattr__"),
        500,
        id="missing attribute",
    ),
]


@pytest.mark.parametrize(("rule", "slow", "cheap", "us"), FRAME_RULES)
def test_python_that_need_not_run_is_told_with_all_of_its_time(
    rule: Rule, slow: list[Event], cheap: list[Event], us: int
):
    known = facts(*[[TRAIN, *slow, WORK]] * 4)
    suspect = only(rule, known)
    assert suspect.where.file is not None
    assert saved_us(known, suspect.change) == pytest.approx(us)
    assert 0 < saved_us(known, suspect.cautious) < us
    assert not list(rule.check(facts(*[[TRAIN, *cheap, WORK]] * 4)))
    once = [[TRAIN, WORK], [TRAIN, *slow, WORK], *[[TRAIN, WORK]] * 3]
    assert not list(rule.check(facts(*once)))


def test_walks_of_wrappers_inside_torch_are_theirs():
    inside = [
        TRAIN,
        py(980, 1_300, "torch/distributed/fsdp/api.py(9): pre_forward"),
        *many(1_000, 120, 10, f"{MODULE}(2894): train"),
    ]
    assert not list(module_tree_walk.RULE.check(facts(*[[*inside, WORK]] * 4)))


def test_a_getattr_that_runs_the_model_is_no_missing_attribute():
    step = [TRAIN, py(1_000, 500, "wrapper.py(19): __getattr__"), op(1_100, 300, "aten::mm")]
    assert not list(attr_miss_exception.RULE.check(facts(*[step] * 4)))


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("site-packages/debugpy/_vendored/pydevd/_pydevd_bundle/pydevd_frame.py(100): trace_dispatch", "pydevd"),
        ("bdb.py(90): trace_dispatch", "bdb"),
        ("coverage/pytracer.py(88): _trace", "coverage"),
    ],
)
def test_a_tool_that_watches_every_call_is_told_and_its_cost_is_not(name: str, tool: str):
    suspect = only(python_tracer_attached.RULE, facts(*[[TRAIN, *many(1_000, 5, 20, name), WORK]] * 4))
    assert tool in suspect.title
    assert suspect.verdict == "cannot-tell"


def test_the_profiler_of_torch_is_no_tool_that_watches():
    step = [TRAIN, py(1_000, 50, "torch/profiler/profiler.py(1236): step"), WORK]
    assert not list(python_tracer_attached.RULE.check(facts(*[step] * 4)))


def test_one_slow_call_of_equal_ones_in_every_step_asks_for_a_try():
    calls = [op(1_000 + n * 20, 15, "aten::addmm", [64, 64]) for n in range(9)]
    slow = [*calls, op(2_000, 900, "aten::addmm", [64, 64])]
    known = facts(*[slow] * 4)
    suspect = only(cpu_denormals.RULE, known)
    assert suspect.verdict == "cannot-tell"
    assert len(suspect.rows) == 4
    assert not list(cpu_denormals.RULE.check(facts(slow, *[[*calls, op(2_000, 15, "aten::addmm", [64, 64])]] * 3)))
    assert not list(cpu_denormals.RULE.check(facts(*[[*slow, *launched(5_000, 1, 20, 10, "aten::mul")]] * 4)))


def test_holes_that_another_threads_python_fills_ask_for_a_try():
    around = [op(3_900, 90, "aten::mm"), op(8_010, 90, "aten::mm"), *many(8_100, 90, 20, "train.py(99): log")]
    busy = [*small_kernels(40, 5, often=60), TRAIN, *around, py(4_000, 4_000, "upload.py(5): compress", thread=2)]
    suspect = only(gil_contention.RULE, facts(*[busy] * 4))
    assert suspect.verdict == "cannot-tell"
    assert suspect.where.label == "upload.py:5 compress"
    waiting = [*busy[:-1], py(4_000, 4_000, "threading.py(5): wait", thread=2)]
    assert not list(gil_contention.RULE.check(facts(*[waiting] * 4)))
    assert not list(gil_contention.RULE.check(facts(*[busy[:-1]] * 4)))


def test_one_rank_never_tells_of_sockets():
    assert not list(numa_affinity.RULE.check(facts(*[small_kernels(140, 5)] * 4)))


def test_a_trace_of_marks_alone_is_silent():
    known = Facts.of(trace_of(parsed([mark(number, number * US, US) for number in range(3)]), {}))
    rules = (optimizer_for_loop, ema_for_loop, python_loop_small_ops, python_gc_pause, exception_slow_path)
    for module in (*rules, redundant_validation, deepcopy_in_loop, module_tree_walk, warning_logging_hot_path):
        assert not list(module.RULE.check(known))
    assert isinstance(known.trace.ts_ns, np.ndarray)
