"""Recompilations, graph breaks, the limit, warm-up, and searches for algorithms: what fires, and what must not."""

from itertools import count

import numpy as np
import pytest
from reference import reader
from written import Event, annotation, call, frame, kernel, mark, operator, parsed

from torchdiag.findings.suspect import Suspect
from torchdiag.rules import (
    cudnn_benchmark_off,
    cudnn_benchmark_varying_shapes,
    graph_breaks,
    jit_profiling_runs,
    recompile_limit_fallback,
    recompile_steady_state,
    sdpa_plan_rebuild,
    triton_autotune_in_step,
    warmup_in_window,
)
from torchdiag.timeline.facts.facts import Facts
from torchdiag.trace.columns import Trace

MS = 1_000_000
STEP = 100 * MS


def facts(steps: list[list[Event]], *, first: int = 0) -> Facts:
    """Steps of 100 ms one after the other; the events of each are given from the start of their step."""
    events: list[Event] = []
    for number, step in enumerate(steps):
        events.append(mark(number + first, number * STEP, STEP))
        events += [later(item, number * STEP) for item in step]
    return Facts.of(reader.trace_of(parsed(events), {}))


def later(item: Event, ns: int) -> Event:
    whole, _, part = str(item["ts"]).partition(".")
    total = int(whole) * 1000 + int(part) + ns
    return {**item, "ts": type(item["ts"])(f"{total // 1000}.{total % 1000:03}")}


def only(found: list[Suspect]) -> Suspect:
    assert len(found) == 1
    return found[0]


def names(trace: Trace, rows: np.ndarray) -> set[str]:
    return {trace.names[int(trace.name[row])] for row in rows.tolist()}


def compile_span(*, gives_up: bool = False) -> list[Event]:
    outer = [
        operator(2 * MS, 60 * MS, "entire_frame_compile"),
        operator(3 * MS, 58 * MS, "_compile.compile_inner (dynamo_timed)"),
    ]
    return outer if gives_up else [*outer, operator(4 * MS, 50 * MS, "compile_attempt_0 (dynamo_timed)")]


def region(start: int, name: str) -> list[Event]:
    return [
        operator(start, MS, "TorchDynamo Cache Lookup"),
        operator(start + MS, 4 * MS, f"Torch-Compiled Region: {name}"),
        operator(start + MS, MS, "Pregraph bytecode"),
        operator(start + 2 * MS, MS, "aten::mm"),
    ]


WARM = region(70 * MS, "0/0")


def test_recompilations_in_two_warm_steps_are_told_with_their_time() -> None:
    found = facts([WARM, [*compile_span(), *region(70 * MS, "0/1")], [*compile_span(), *region(70 * MS, "0/2")]])
    suspect = only(list(recompile_steady_state.check(found)))
    assert "2 of 3 warm steps" in suspect.title
    assert "3 versions" in suspect.title
    assert names(found.trace, suspect.rows) == {"entire_frame_compile"}
    assert suspect.change is not None
    assert suspect.change.shortened.tolist() == suspect.rows.tolist()


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([compile_span() + WARM, WARM, WARM], id="the first step compiles"),
        pytest.param([WARM, compile_span() + WARM, WARM, WARM], id="one more makes a dimension dynamic"),
        pytest.param([WARM, compile_span(gives_up=True), compile_span(gives_up=True)], id="the limit is no compile"),
        pytest.param([WARM, WARM, WARM], id="none"),
    ],
)
def test_a_compilation_that_happens_once_is_silent(steps: list[list[Event]]) -> None:
    assert not list(recompile_steady_state.check(facts(steps)))


def test_pieces_of_one_function_are_breaks() -> None:
    pieces = [*region(10 * MS, "0/0"), *region(20 * MS, "1/0"), *region(30 * MS, "2/0")]
    found = facts([pieces] * 3)
    suspect = only(list(graph_breaks.check(found)))
    assert "2 breaks a step" in suspect.title
    assert names(found.trace, suspect.rows) == {"Torch-Compiled Region: 1/0", "Torch-Compiled Region: 2/0"}
    assert suspect.change is not None
    # two look-ups and two prologues in each of three steps
    assert len(suspect.change.shortened) == 12
    assert suspect.confidence == "medium"
    resumed = [*pieces, frame(19 * MS, 8 * MS, "model.py(7): torch_dynamo_resume_in_forward_at_7")]
    assert only(list(graph_breaks.check(facts([resumed] * 3)))).confidence == "high"


def test_layers_compiled_by_themselves_are_no_breaks() -> None:
    layers = [*region(10 * MS, "0/0"), *region(20 * MS, "0/1"), *region(30 * MS, "0/0"), *region(40 * MS, "7/0")]
    assert not list(graph_breaks.check(facts([layers] * 3)))


def test_eager_steps_after_the_limit_are_told_and_compared_with_compiled_ones() -> None:
    eager = [operator(10 * MS, MS, "TorchDynamo Cache Lookup"), operator(11 * MS, 80 * MS, "aten::mm")]
    found = facts([WARM, WARM, [*compile_span(gives_up=True), *eager], eager, eager])
    suspect = only(list(recompile_limit_fallback.check(found)))
    assert "runs eagerly in 3 steps" in suspect.title
    # Steps are equally long here, compiled or not: nothing to gain can be shown.
    assert suspect.verdict == "cannot-tell"
    assert suspect.change is None


def test_functions_that_are_skipped_on_purpose_are_no_fallback() -> None:
    skipped = [operator(10 * MS, MS, "TorchDynamo Cache Lookup"), operator(11 * MS, 80 * MS, "aten::mm")]
    assert not list(recompile_limit_fallback.check(facts([skipped, WARM, skipped])))


def test_a_recording_that_only_loads_and_compiles_is_a_cold_start() -> None:
    loads = [call(number * 20 * MS, 15 * MS, name="cuModuleLoadData") for number in range(5)]
    suspect = only(list(warmup_in_window.check(facts([loads]))))
    assert "cold start: 75 %" in suspect.title
    assert suspect.verdict == "no-gain"
    assert suspect.change is None


def test_a_long_first_step_is_left_out_and_short_ones_are_not_called_cold() -> None:
    work = [operator(MS, 50 * MS), operator(60 * MS, 30 * MS)]
    assert not list(warmup_in_window.check(facts([work] * 3)))
    events = [
        mark(0, 0, 4 * STEP),
        call(MS, 300 * MS, name="cudaLibraryLoadData"),
        *(mark(number, (3 + number) * STEP, STEP) for number in (1, 2, 3)),
    ]
    suspect = only(list(warmup_in_window.check(Facts.of(reader.trace_of(parsed(events), {})))))
    assert "4.0 times as long" in suspect.title


def convolution(start: int, length: int, dims: str, kernels: int, correlation: "count[int]") -> list[Event]:
    conv = operator(start, length, "aten::cudnn_convolution")
    conv["args"] = {"Input Dims": dims}
    events = [conv]
    for number in range(kernels):
        launch = next(correlation)
        events.append(call(start + 1000 * (number + 1), 500, launch))
        events.append(kernel(start + length + 10_000 * number, 9_000, launch, name=f"conv_algorithm_{number}"))
    return events


def test_searches_for_every_new_shape_are_told() -> None:
    ids = count(1)
    usual = [piece for at in range(5) for piece in convolution(at * 12 * MS, MS, "[[1, 3, 400, 400]]", 1, ids)]
    steps = [[*usual, *convolution(70 * MS, 25 * MS, f"[[1, 3, {size}, 500]]", 6, ids)] for size in (410, 420, 430)]
    found = facts(steps)
    suspect = only(list(cudnn_benchmark_varying_shapes.check(found)))
    assert "3 of 3 warm steps, for 3 new shapes" in suspect.title
    assert suspect.change is not None
    assert len(suspect.change.removed) == 3 * 5  # of six candidates one remains
    assert suspect.change.host_scale == pytest.approx(1 / 25)


def test_a_slow_convolution_of_a_known_shape_or_with_one_kernel_is_no_search() -> None:
    ids = count(1)
    usual = [piece for at in range(5) for piece in convolution(at * 12 * MS, MS, "[[1, 3, 400, 400]]", 1, ids)]
    known = [[*usual, *convolution(70 * MS, 25 * MS, "[[1, 3, 400, 400]]", 6, ids)] for _ in range(3)]
    single = [[*usual, *convolution(70 * MS, 25 * MS, f"[[1, 3, {n}, 400]]", 1, ids)] for n in range(3)]
    assert not list(cudnn_benchmark_varying_shapes.check(facts(known)))
    assert not list(cudnn_benchmark_varying_shapes.check(facts(single)))


def test_fixed_shapes_may_be_tried_with_the_search_and_changing_ones_not() -> None:
    ids = count(1)
    fixed = [convolution(MS, MS, "[[1, 3, 400, 400]]", 3, ids) for _ in range(3)]
    assert only(list(cudnn_benchmark_off.check(facts(fixed)))).verdict == "cannot-tell"
    changing = [convolution(MS, MS, f"[[1, 3, {n}, 400]]", 3, ids) for n in range(3)]
    assert not list(cudnn_benchmark_off.check(facts(changing)))


def attention(start: int, length: int, dims: str) -> Event:
    item = operator(start, length, "aten::_scaled_dot_product_cudnn_attention")
    item["args"] = {"Input Dims": dims}
    return item


def test_attention_that_plans_for_new_lengths_is_told_and_a_slow_known_length_is_not() -> None:
    usual = [attention(at * 2 * MS, MS, "[[2, 8, 100, 64]]") for at in range(20)]
    new = [[*usual, attention(45 * MS, 50 * MS, f"[[2, 8, {n}, 64]]")] for n in (101, 102, 103)]
    suspect = only(list(sdpa_plan_rebuild.check(facts(new))))
    assert "3 of 3 warm steps, 50 ms each" in suspect.title
    assert suspect.change is not None
    assert suspect.change.host_scale == pytest.approx(1 / 50)
    known = [[*usual, attention(45 * MS, 50 * MS, "[[2, 8, 100, 64]]")]] * 3
    assert not list(sdpa_plan_rebuild.check(facts(known)))


def test_tuning_in_warm_steps_takes_its_launches_along() -> None:
    tuning = [
        frame(10 * MS, 50 * MS, "triton/runtime/autotuner.py(140): _bench"),
        frame(11 * MS, 40 * MS, "triton/testing.py(96): do_bench"),
        call(12 * MS, MS, 5, name="cudaDeviceSynchronize"),
    ]
    found = facts([[], tuning, tuning])
    suspect = only(list(triton_autotune_in_step.check(found)))
    assert len(suspect.rows) == 2  # the outer frame of each
    assert suspect.change is not None
    assert names(found.trace, suspect.change.unblocked) == {"cudaDeviceSynchronize"}
    assert not list(triton_autotune_in_step.check(facts([tuning, [], []])))


def test_fallbacks_of_scripted_code_are_told_where_most_steps_have_them() -> None:
    bails = [operator(MS, MS, "prim::BailOut")]
    assert only(list(jit_profiling_runs.check(facts([bails] * 5)))).verdict == "cannot-tell"
    assert not list(jit_profiling_runs.check(facts([bails, [annotation(MS, MS, "work")], [], [], []])))
