"""Each wait is accused by one rule, for the most telling reason; what does not wait is not accused."""

import numpy as np
import pytest
from reference import corpus
from reference.reader import trace_of
from waiting_steps import STEP, accused, backward_then_step, below, fetch, item, names, ops, read, send, steps, truth
from written import Event, annotation, call, frame, operator, parsed

from torchdiag.rules import (
    sync_bool_mask_index,
    sync_clip_grad,
    sync_data_dependent_shape,
    sync_device_scalar_index,
    sync_explicit_device,
    sync_gradscaler,
    sync_host_roundtrip,
    sync_item_scalar,
    sync_lengths,
    sync_nan_guard,
    sync_print_log_tensor,
    sync_tensor_truth,
)
from torchdiag.timeline.facts.blocking import blocking
from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.wait_reasons import Reason, wait_reasons
from torchdiag.trace.load import load

RULES = [
    module.RULE
    for module in (
        sync_bool_mask_index, sync_clip_grad, sync_data_dependent_shape, sync_device_scalar_index, sync_explicit_device,
        sync_gradscaler, sync_host_roundtrip, sync_item_scalar, sync_lengths, sync_nan_guard, sync_print_log_tensor,
        sync_tensor_truth,
    )
]  # fmt: skip
LINE = "train.py(88): step"
UNSCALE, UPDATE = "aten::_amp_foreach_non_finite_check_and_unscale_", "aten::_amp_update_scale_"


def who(facts: Facts) -> set[str]:
    """The ids of all sync rules that accuse something."""
    return {rule.id for rule in RULES if accused(rule, facts)}


def test_a_read_number_is_accused_at_its_line_with_its_calls() -> None:
    facts = steps(lambda start, c: [frame(start + 100_000, 90_000, LINE), *item(start + 110_000, c)])
    (suspect,) = accused(sync_item_scalar.RULE, facts)
    assert suspect.title == "Reading a number from the device makes the host wait once a step at train.py:88 step"
    assert suspect.where.label == "train.py:88 step"
    assert len(suspect.rows) == 4 and names(facts, suspect.rows) == {"cudaStreamSynchronize"}
    assert suspect.change is not None
    assert names(facts, suspect.change.unblocked) == {"cudaStreamSynchronize", "cudaMemcpyAsync"}
    assert len(suspect.change.unblocked) == 8 and not len(suspect.change.shortened)
    assert (suspect.confidence, suspect.verdict) == ("high", None)
    assert who(facts) == {"sync-item-scalar"}


def test_a_blocking_copy_of_rocm_is_one_wait() -> None:
    def body(start: int, correlation: int) -> list[Event]:
        return [*below(("aten::item", "aten::_local_scalar_dense"), start + 100_000, 20_000),
                call(start + 101_000, 15_000, correlation, name="hipMemcpyWithStream")]  # fmt: skip

    facts = steps(body)
    (suspect,) = accused(sync_item_scalar.RULE, facts)
    assert names(facts, suspect.rows) == {"hipMemcpyWithStream"} and len(suspect.rows) == 4
    assert who(facts) == {"sync-item-scalar"}


def test_several_lines_are_several_suspects_and_many_are_told_together() -> None:
    def body(start: int, correlation: int) -> list[Event]:
        events: list[Event] = []
        for line in range(7):
            at = start + 100_000 + 50_000 * line
            events += [frame(at, 40_000, f"train.py({line + 1}): f{line}"), *item(at + 5_000, correlation + line)]
        return events

    found = accused(sync_item_scalar.RULE, steps(body))
    assert len(found) == 5
    assert [len(suspect.rows) for suspect in found] == [4, 4, 4, 4, 12]
    assert found[-1].title.endswith("3 times a step at 3 more places")


def test_a_number_of_the_cpu_waits_for_nothing() -> None:
    facts = steps(lambda start, _: below(("aten::item", "aten::_local_scalar_dense"), start + 100_000, 10_000))
    assert who(facts) == set()


def test_reading_on_every_other_step_is_no_bug() -> None:
    facts = steps(lambda start, c: item(start + 100_000, c) if start // STEP % 2 else [], count=8)
    assert who(facts) == set()


def test_what_happens_once_in_a_trace_without_steps_is_not_accused() -> None:
    facts = steps(lambda start, c: item(start + 100_000, c), count=1, marks=False)
    assert facts.steps_source == "none"
    assert who(facts) == set()


def test_step_counters_on_the_device_are_told_of() -> None:
    facts = steps(
        lambda start, c: [annotation(start + 90_000, 40_000, "Optimizer.step#Adam.step"), *item(start + 100_000, c)]
    )
    (suspect,) = accused(sync_item_scalar.RULE, facts)
    assert "step counters live on the device" in suspect.fix


@pytest.mark.parametrize(
    ("outer", "advice"),
    [
        ((), "unconditionally"),
        (("torch/distributions/distribution.py(46): __init__",), "validate_args=False"),
    ],
)
def test_a_decision_by_a_tensor(outer: tuple[str, ...], advice: str) -> None:
    facts = steps(lambda start, c: [*ops(start + 50_000, "aten::any"), *truth(start + 100_000, c, *outer)])
    (suspect,) = accused(sync_tensor_truth.RULE, facts)
    assert advice in suspect.fix and len(suspect.rows) == 4
    assert who(facts) == {"sync-tensor-truth"}


@pytest.mark.parametrize(
    ("operators", "advice"),
    [
        (("aten::equal", "aten::item"), "(a == b).all()"),
        (("aten::allclose", "aten::item"), "torch.isclose"),
        (("aten::multinomial", "aten::item"), "exponential_"),
        (("aten::linalg_inv", "aten::_linalg_check_errors", "aten::is_nonzero", "aten::item"), "check_errors=False"),
    ],
)
def test_operators_that_decide_within_have_advice_of_their_own(operators: tuple[str, ...], advice: str) -> None:
    facts = steps(lambda start, c: read(start + 100_000, c, *operators, size=1))
    (suspect,) = accused(sync_tensor_truth.RULE, facts)
    assert advice in suspect.fix
    assert who(facts) == {"sync-tensor-truth"}


@pytest.mark.parametrize(
    ("operators", "what", "advice"),
    [
        (("aten::index", "aten::nonzero"), "Selecting", "weight by the mask"),
        (("aten::masked_select", "aten::item", "aten::_local_scalar_dense"), "Selecting", "weight by the mask"),
        (("aten::index_put_", "aten::_index_put_impl_", "aten::nonzero"), "Assigning", "torch.where"),
    ],
)
def test_a_boolean_mask(operators: tuple[str, ...], what: str, advice: str) -> None:
    facts = steps(lambda start, c: read(start + 100_000, c, *operators, size=8))
    (suspect,) = accused(sync_bool_mask_index.RULE, facts)
    assert suspect.title.startswith(what) and advice in suspect.fix
    assert who(facts) == {"sync-bool-mask-index"}


def test_assigning_a_python_number_by_a_mask_waits_for_nothing() -> None:
    chain = ("aten::index_put_", "aten::_index_put_impl_", "aten::item", "aten::_local_scalar_dense")
    facts = steps(lambda start, _: below(chain, start + 100_000, 10_000))
    assert who(facts) == set()


def test_a_table_on_the_cpu_indexed_on_the_device_is_a_transfer_and_no_mask() -> None:
    facts = steps(lambda start, c: send(start + 100_000, c, "aten::index"))
    assert who(facts) == set()


@pytest.mark.parametrize(
    ("operators", "advice"),
    [
        (("aten::_unique2",), "unique values"),
        (("aten::where", "aten::nonzero_numpy", "aten::nonzero"), "nonzero_static"),
        (("aten::repeat_interleave", "aten::item", "aten::_local_scalar_dense"), "output_size"),
        (("aten::one_hot", "aten::item", "aten::_local_scalar_dense"), "num_classes"),
        (("aten::bincount",), "scatter_add_"),
        (("aten::tensor_split", "aten::to", "aten::copy_"), "list of Python integers"),
    ],
)
def test_a_shape_that_depends_on_values(operators: tuple[str, ...], advice: str) -> None:
    facts = steps(lambda start, c: read(start + 100_000, c, *operators, size=8))
    (suspect,) = accused(sync_data_dependent_shape.RULE, facts)
    assert advice in suspect.fix and f"`{operators[0]}`" in suspect.title
    assert who(facts) == {"sync-data-dependent-shape"}


def test_clipping_that_checks_for_finite_norms() -> None:
    clip = "torch/nn/utils/clip_grad.py(48): _get_total_norm"
    facts = steps(lambda start, c: [frame(start + 90_000, 90_000, LINE), *truth(start + 100_000, c, clip)])
    (suspect,) = accused(sync_clip_grad.RULE, facts)
    assert "error_if_nonfinite" in suspect.fix and suspect.where.label == "train.py:88 step"
    assert who(facts) == {"sync-clip-grad"}


def test_clipping_of_old_versions_is_told_by_its_three_conditions() -> None:
    def body(start: int, c: int) -> list[Event]:
        return backward_then_step(
            [*ops(start + 100_000, "aten::stack", "aten::norm", "aten::isnan"), *truth(start + 110_000, c),
             *ops(start + 140_000, "aten::isinf"), *truth(start + 150_000, c + 1),
             *ops(start + 180_000, "aten::add", "aten::reciprocal", "aten::mul", "aten::lt"),
             *truth(start + 200_000, c + 2)],
            start,
        )  # fmt: skip

    facts = steps(body)
    (suspect,) = accused(sync_clip_grad.RULE, facts)
    assert len(suspect.rows) == 12 and "3 times a step" in suspect.title
    assert who(facts) == {"sync-clip-grad"}


def test_norms_that_are_read_one_by_one_are_clipping() -> None:
    def body(start: int, c: int) -> list[Event]:
        reads: list[Event] = []
        for number in range(3):
            at = start + 100_000 + 50_000 * number
            reads += [*ops(at, "aten::linalg_vector_norm"), *item(at + 5_000, c + number)]
        return backward_then_step(reads, start)

    facts = steps(body)
    (suspect,) = accused(sync_clip_grad.RULE, facts)
    assert len(suspect.rows) == 12 and suspect.confidence == "medium"
    assert who(facts) == {"sync-clip-grad"}


def test_a_logged_norm_is_no_clipping() -> None:
    def body(start: int, c: int) -> list[Event]:
        clip = ops(start + 100_000, "aten::linalg_vector_norm", "aten::clamp", "aten::_foreach_mul_")
        return backward_then_step([*clip, *item(start + 120_000, c)], start)

    assert who(steps(body)) == {"sync-item-scalar"}


def test_a_condition_on_a_norm_elsewhere_is_an_ordinary_decision() -> None:
    facts = steps(
        lambda start, c: [*ops(start + 90_000, "aten::linalg_vector_norm", "aten::gt"), *truth(start + 100_000, c)]
    )
    assert who(facts) == {"sync-tensor-truth"}


def finite_checks(number: int, start: int, c: int) -> list[Event]:
    events: list[Event] = []
    for index in range(number):
        at = start + 100_000 + 50_000 * index
        events += [*ops(at, "aten::isfinite", "aten::all"), *truth(at + 5_000, c + index)]
    return events


def test_many_finite_checks_are_a_guard_and_few_are_decisions() -> None:
    facts = steps(lambda start, c: finite_checks(4, start, c))
    (suspect,) = accused(sync_nan_guard.RULE, facts)
    assert len(suspect.rows) == 16 and "4 times a step" in suspect.title
    assert who(facts) == {"sync-nan-guard"}
    assert who(steps(lambda start, c: finite_checks(1, start, c))) == {"sync-tensor-truth"}


def test_a_finite_check_in_a_hook_of_the_backward_pass_is_a_guard() -> None:
    node = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"

    def body(start: int, c: int) -> list[Event]:
        inner = operator(start + 95_000, 80_000, "torch::autograd::AccumulateGrad")
        return [operator(start + 90_000, 90_000, node), inner, *finite_checks(1, start, c)]

    assert who(steps(body)) == {"sync-nan-guard"}


def test_anomaly_mode_is_left_to_its_own_rule() -> None:
    def body(start: int, c: int) -> list[Event]:
        events: list[Event] = []
        for index in range(4):
            at = start + 100_000 + 50_000 * index
            node = operator(at, 45_000, "autograd::engine::evaluate_function: MmBackward0")
            events += [
                node,
                *ops(at + 1_000, "aten::isnan", "aten::_is_any_true"),
                *item(at + 10_000, c + index, size=1),
            ]
        return events

    facts = steps(body)
    assert set(facts.get(wait_reasons).reason.tolist()) == {Reason.ANOMALY}
    assert who(facts) == set()


def device_wide(at: int, *outer: str) -> list[Event]:
    return [*below(outer, at, 60_000), call(at + 1_000, 50_000, 0, name="cudaDeviceSynchronize")]


def test_a_synchronisation_in_the_step_is_accused_by_its_line() -> None:
    facts = steps(lambda start, _: device_wide(start + 100_000, LINE, "torch/cuda/__init__.py(975): synchronize"))
    (suspect,) = accused(sync_explicit_device.RULE, facts)
    assert suspect.title == "The host waits for the whole device once a step at train.py:88 step"
    assert len(suspect.rows) == 4 and suspect.change is not None
    assert np.array_equal(suspect.change.unblocked, suspect.rows)
    assert who(facts) == {"sync-explicit-device"}


def test_synchronisations_inside_record_function_are_the_persons() -> None:
    facts = steps(lambda start, _: device_wide(start + 100_000, "DistributedDataParallel.forward"))
    assert who(facts) == {"sync-explicit-device"}


@pytest.mark.parametrize(
    "outer",
    [
        ("torch/profiler/profiler.py(924): _transit_action", "torch/cuda/__init__.py(975): synchronize"),
        ("aten::_cudnn_rnn",),
    ],
    ids=["the profiler's own", "an operator's own"],
)
def test_synchronisations_of_profilers_and_operators_are_not_accused(outer: tuple[str, ...]) -> None:
    assert who(steps(lambda start, _: device_wide(start + 100_000, *outer))) == set()


def test_a_synchronisation_after_everything_is_not_accused() -> None:
    facts = steps(lambda *_: [], count=1, more=device_wide(STEP - 40_000))
    assert who(facts) == set()


def test_a_stream_that_is_waited_for_on_purpose_is_not_accused() -> None:
    facts = steps(lambda start, _: [call(start + 100_000, 50_000, 0, name="cudaEventSynchronize")])
    assert who(facts) == set()


MATCHER = "matcher.py(20): forward"


def test_a_trip_to_the_host_and_back_within_a_function() -> None:
    def body(start: int, c: int) -> list[Event]:
        events: list[Event] = []
        for index in range(2):
            at = start + 100_000 + 300_000 * index
            events += [frame(at, 250_000, MATCHER), *fetch(at + 10_000, c + 2 * index),
                       frame(at + 50_000, 100_000, "scipy/optimize/_lsap.py(10): linear_sum_assignment"),
                       *send(at + 200_000, c + 2 * index + 1)]  # fmt: skip
        return events

    facts = steps(body)
    (suspect,) = accused(sync_host_roundtrip.RULE, facts)
    assert suspect.where.label == "matcher.py:20 forward" and "2 times a step" in suspect.title
    assert len(suspect.rows) == 8 and suspect.change is not None and suspect.cautious is not None
    # Out and back, a copy's call and its wait each, twice a step.
    assert len(suspect.change.unblocked) == 4 * 2 * 2 * 2
    assert names(facts, suspect.change.shortened) == {"scipy/optimize/_lsap.py(10): linear_sum_assignment"}
    assert len(suspect.cautious.unblocked) == 4 * 2 and not len(suspect.cautious.shortened)
    assert who(facts) == {"sync-host-roundtrip"}


@pytest.mark.parametrize(("computes", "rule"), [(True, "sync-host-roundtrip"), (False, "sync-print-log-tensor")])
def test_without_known_steps_a_function_around_the_copies_may_be_the_loop(computes: bool, rule: str) -> None:
    events = [frame(20_000, 890_000, "train.py(5): epoch")]
    for index in range(4):
        at = 100_000 + 200_000 * index**2 // 3  # in no rhythm, so that no steps are found
        events += [*fetch(at, 100 + 2 * index), *send(at + 40_000, 101 + 2 * index)]
        events += [frame(at + 21_000, 10_000, "numpy/lib/_function_base_impl.py(5): median")] * computes
    facts = steps(lambda *_: [], count=1, marks=False, more=events)
    assert facts.steps_source == "none"
    assert who(facts) == {rule}


def test_a_result_and_the_next_input_are_no_trip() -> None:
    def body(start: int, c: int) -> list[Event]:
        return [
            *fetch(start + 100_000, c, "pipeline.py(10): to_host"),
            *send(start + 200_000, c + 1, "pipeline.py(20): to_device"),
        ]

    assert who(steps(body)) == {"sync-print-log-tensor"}


def test_a_batch_between_the_copies_ends_the_trip() -> None:
    def body(start: int, c: int) -> list[Event]:
        batch = annotation(start + 150_000, 20_000, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
        return [
            frame(start + 50_000, 700_000, MATCHER),
            *fetch(start + 100_000, c),
            batch,
            *send(start + 200_000, c + 1),
        ]

    assert who(steps(body)) == {"sync-print-log-tensor"}


def test_without_stacks_one_trip_a_step_may_be_a_result_and_several_are_trips() -> None:
    def body(trips: int, start: int, c: int) -> list[Event]:
        events: list[Event] = []
        for index in range(trips):
            at = start + 100_000 + 100_000 * index
            events += [*fetch(at, c + 2 * index), *send(at + 50_000, c + 2 * index + 1)]
        return events

    assert who(steps(lambda start, c: body(1, start, c))) == {"sync-print-log-tensor"}
    (suspect,) = accused(sync_host_roundtrip.RULE, steps(lambda start, c: body(3, start, c)))
    assert suspect.confidence == "medium" and len(suspect.rows) == 12


@pytest.mark.parametrize(
    ("outer", "what"),
    [
        (("torch/_tensor.py(558): __repr__", "torch/_tensor_str.py(712): _str"), "Printing"),
        (("torch/_tensor.py(1146): __format__",), "Printing"),
    ],
)
def test_a_printed_tensor(outer: tuple[str, ...], what: str) -> None:
    facts = steps(lambda start, c: [frame(start + 90_000, 90_000, LINE), *item(start + 100_000, c, *outer)])
    (suspect,) = accused(sync_print_log_tensor.RULE, facts)
    assert suspect.title.startswith(what) and suspect.where.label == "train.py:88 step"
    assert suspect.hopeful is not None and names(facts, suspect.hopeful.shortened) == {outer[0]}
    assert who(facts) == {"sync-print-log-tensor"}


def test_a_list_of_a_tensor() -> None:
    facts = steps(lambda start, c: fetch(start + 100_000, c, LINE, "<built-in method tolist of Tensor object at 0x7f>"))
    (suspect,) = accused(sync_print_log_tensor.RULE, facts)
    assert suspect.title.startswith("Turning a tensor on the device into a list")
    assert who(facts) == {"sync-print-log-tensor"}


def test_a_tensor_that_is_fetched_is_told_with_its_size_and_a_large_one_is_a_transfer() -> None:
    (suspect,) = accused(sync_print_log_tensor.RULE, steps(lambda start, c: fetch(start + 100_000, c)))
    assert suspect.title == "Fetching 800 bytes from the device makes the host wait once a step"
    assert who(steps(lambda start, c: fetch(start + 100_000, c, size=1 << 20))) == set()


def scaled(optimizers: int, start: int, c: int) -> list[Event]:
    events: list[Event] = []
    for index in range(optimizers):
        at = start + 100_000 + 100_000 * index
        events += [operator(at, 2_000, UNSCALE), *item(at + 5_000, c + index),
                   annotation(at + 40_000, 20_000, "Optimizer.step#SGD.step")]  # fmt: skip
    return [*events, operator(start + 700_000, 2_000, UPDATE)]


def test_one_read_of_the_scaler_is_by_design_and_two_are_one_too_many() -> None:
    assert who(steps(lambda start, c: scaled(1, start, c))) == set()
    facts = steps(lambda start, c: scaled(2, start, c))
    (suspect,) = accused(sync_gradscaler.RULE, facts)
    assert len(suspect.rows) == 4 and "2 times a step" in suspect.title
    assert who(facts) == {"sync-gradscaler"}


def test_clipping_may_come_between_the_check_and_the_read_of_the_scaler() -> None:
    def body(start: int, c: int) -> list[Event]:
        clip = ops(start + 110_000, "aten::linalg_vector_norm", "aten::clamp", "aten::_foreach_mul_")
        then = annotation(start + 150_000, 20_000, "Optimizer.step#SGD.step")
        unscaled, updated = operator(start + 100_000, 2_000, UNSCALE), operator(start + 200_000, 2_000, UPDATE)
        return [unscaled, *clip, *item(start + 120_000, c), then, updated]

    facts = steps(body)
    assert set(facts.get(wait_reasons).reason.tolist()) == {Reason.SCALER}
    assert who(facts) == set()


def test_the_scaler_is_known_by_its_file_too() -> None:
    step = "torch/amp/grad_scaler.py(363): _maybe_opt_step"
    facts = steps(lambda start, c: [*item(start + 100_000, c, step), *item(start + 200_000, c + 1, step)])
    assert who(facts) == {"sync-gradscaler"}


@pytest.mark.parametrize("following", ["aten::select", "aten::slice", "aten::narrow"])
def test_indexing_by_a_number_of_the_device(following: str) -> None:
    facts = steps(lambda start, c: [*item(start + 100_000, c, size=8), *ops(start + 121_000, following)])
    (suspect,) = accused(sync_device_scalar_index.RULE, facts)
    assert len(suspect.rows) == 4
    assert who(facts) == {"sync-device-scalar-index"}


def test_both_ends_of_a_slice_are_read_for_it() -> None:
    def body(start: int, c: int) -> list[Event]:
        return [
            *item(start + 100_000, c, size=8),
            *item(start + 121_000, c + 1, size=8),
            *ops(start + 142_000, "aten::slice"),
        ]

    (suspect,) = accused(sync_device_scalar_index.RULE, steps(body))
    assert len(suspect.rows) == 8


@pytest.mark.parametrize(
    ("size", "gap", "outer"),
    [(4, 1_000, ()), (8, 60_000, ()), (8, 1_000, ("<built-in method item of Tensor object at 0x7f>",))],
    ids=["a float", "much later", "asked for by name"],
)
def test_a_number_read_for_its_own_sake_is_no_index(size: int, gap: int, outer: tuple[str, ...]) -> None:
    facts = steps(
        lambda start, c: [*item(start + 100_000, c, *outer, size=size), *ops(start + 120_000 + gap, "aten::select")]
    )
    assert who(facts) == {"sync-item-scalar"}


@pytest.mark.parametrize(
    "outer", [("torch/nn/utils/rnn.py(258): pack_padded_sequence",), ("aten::ctc_loss",)], ids=["packing", "CTC"]
)
def test_lengths_fetched_by_who_needs_them(outer: tuple[str, ...]) -> None:
    facts = steps(lambda start, c: fetch(start + 100_000, c, *outer, size=64))
    (suspect,) = accused(sync_lengths.RULE, facts)
    assert "collate" in suspect.fix
    assert who(facts) == {"sync-lengths"}


def test_lengths_fetched_just_before() -> None:
    facts = steps(
        lambda start, c: [
            *fetch(start + 100_000, c, size=64),
            *ops(start + 130_000, "aten::sort", "aten::_pack_padded_sequence"),
        ]
    )
    assert who(facts) == {"sync-lengths"}


def test_a_loss_read_before_the_next_step_packs_is_no_length() -> None:
    def body(start: int, c: int) -> list[Event]:
        return [*ops(start + 50_000, "aten::embedding", "aten::_pack_padded_sequence"), *item(start + 900_000, c)]

    assert who(steps(body)) == {"sync-item-scalar"}


def test_the_longest_length_of_attention_over_varying_lengths() -> None:
    def body(start: int, c: int) -> list[Event]:
        attention = operator(start + 150_000, 10_000, "flash_attn::_flash_attn_varlen_forward")
        return [*ops(start + 90_000, "aten::max"), *item(start + 100_000, c), attention]

    assert who(steps(body)) == {"sync-lengths"}


def test_a_trace_of_the_cpu_alone_accuses_nobody() -> None:
    events = [annotation(0, STEP, "ProfilerStep#1"), *below(("aten::is_nonzero", "aten::item"), 100, 900)]
    assert who(Facts.of(trace_of(parsed(events), {}))) == set()


REAL = (
    "particle_transformer/profiler_trace_single_sample.json.gz",
    "switch_transformers/trace.json.gz",
    "hta/timeline_analysis__sampled_rank-0.json.gz",
    "tracelens/h100__gaunernst_bert-small-uncased__1016001.json.gz",
)


@corpus.needs_traces
@pytest.mark.parametrize("path", REAL)
def test_in_real_traces_too_a_wait_is_accused_once(path: str) -> None:
    facts = Facts.of(load(corpus.path_of(path)))
    suspects = [suspect for rule in RULES for suspect in accused(rule, facts)]
    rows = np.concatenate([suspect.rows for suspect in suspects])
    assert len(np.unique(rows)) == len(rows) > 0
    assert set(rows.tolist()) <= set(facts.get(blocking).row.tolist())
