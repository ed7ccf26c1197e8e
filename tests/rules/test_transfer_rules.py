"""Each rule about transfers accuses its own signature, and one copy is accused by one rule only."""

import numpy as np
import pytest
from device_steps import STEP, Event, accused, facts, launch, operator, transfer, with_args
from written import annotation, call, frame, microseconds

from torchdiag.rules.d2h_large_output import RULE as LARGE_OUTPUT
from torchdiag.rules.h2d_create_then_move import RULE as CREATED
from torchdiag.rules.h2d_many_small import RULE as MANY_SMALL
from torchdiag.rules.h2d_not_overlapped import RULE as NOT_OVERLAPPED
from torchdiag.rules.h2d_pageable import RULE as PAGEABLE
from torchdiag.rules.h2d_pinned_blocking import RULE as PINNED_BLOCKING
from torchdiag.rules.h2d_repeated_constant import RULE as REPEATED
from torchdiag.rules.h2d_tiny_constant import RULE as CONSTANT
from torchdiag.rules.offload_thrash import RULE as OFFLOAD
from torchdiag.rules.pin_in_loop import RULE as PIN
from torchdiag.timeline.facts.facts import Facts

MB = 1_000_000
COPY_RULES = (
    CREATED, CONSTANT, REPEATED, MANY_SMALL, PAGEABLE, PINNED_BLOCKING, NOT_OVERLAPPED, LARGE_OUTPUT, OFFLOAD
)  # fmt: skip


def firing(known: Facts) -> list[str]:
    """The ids of the copy rules that accuse anything; no two of them accuse the same copy."""
    found = {rule.id: [suspect.rows for suspect in accused(rule, known)] for rule in COPY_RULES}
    rows = np.concatenate([np.empty(0, np.int64), *(rows for told in found.values() for rows in told)])
    assert len(set(rows.tolist())) == len(rows)
    return [name for name, told in found.items() if told]


def in_module(start: int, at: int, length: int) -> list[Event]:
    """A line of a person's module."""
    return [
        frame(start + at, length, "nn.Module: Net_0"),
        frame(start + at, length, "model.py(12): forward"),
    ]


def test_a_large_pageable_batch_is_accused_with_its_waits_and_half_its_time():
    known = facts(lambda start, c: transfer(start + 1_000, c, 19 * MB, took=100_000))
    assert firing(known) == ["h2d-pageable"]
    (suspect,) = accused(PAGEABLE, known)
    assert suspect.title == "19 MB are copied from pageable memory once a step at aten::to"
    assert len(suspect.rows) == 4 == len(suspect.change.scaled)
    assert suspect.change.device_scale == 0.5
    waited = [known.trace.names[int(known.trace.name[row])] for row in suspect.change.unblocked]
    assert sorted(set(waited)) == ["cudaMemcpyAsync", "cudaStreamSynchronize"]
    assert len(waited) == 8
    assert len(suspect.cautious.scaled) == 0


def test_the_speed_of_pinned_copies_of_the_same_trace_is_used():
    def body(start: int, c: int) -> list[Event]:
        pinned = transfer(start + 500_000, c + 1, 8 * MB, "Pinned -> Device", waits=False, took=20_000, stream=9)
        return transfer(start + 1_000, c, 8 * MB, took=100_000) + pinned

    (suspect,) = accused(PAGEABLE, facts(body))
    assert suspect.change.device_scale == pytest.approx(0.2)


def test_small_pageable_batches_are_no_finding():
    assert firing(facts(lambda start, c: transfer(start + 1_000, c, 300_000))) == []


def test_a_copy_in_one_step_of_many_is_no_finding():
    assert firing(facts(lambda start, c: transfer(start + 1_000, c, 19 * MB) if start == 2 * STEP else [], 6)) == []


def test_a_pinned_copy_that_is_waited_for_is_accused():
    known = facts(lambda start, c: transfer(start + 1_000, c, 19 * MB, "Pinned -> Device"))
    assert firing(known) == ["h2d-pinned-blocking"]
    (suspect,) = accused(PINNED_BLOCKING, known)
    assert len(suspect.change.unblocked) == 8 and len(suspect.change.scaled) == 0


def test_an_asynchronous_copy_that_runs_alone_on_the_computing_stream_is_accused():
    def body(start: int, c: int, stream: int = 7) -> list[Event]:
        return transfer(start + 1_000, c, 19 * MB, "Pinned -> Device", waits=False, took=200_000, stream=stream)

    known = facts(body)
    assert firing(known) == ["h2d-not-overlapped"]
    (suspect,) = accused(NOT_OVERLAPPED, known)
    assert suspect.title.endswith("20% of a step")
    assert suspect.change.removed.tolist() == suspect.rows.tolist()
    assert firing(facts(lambda start, c: body(start, c, stream=9))) == []


def test_a_copy_beside_kernels_is_overlapped():
    def body(start: int, c: int) -> list[Event]:
        alone = transfer(start + 1_000, c, 19 * MB, "Pinned -> Device", waits=False, took=200_000)
        return alone + launch(start + 2_000, c + 1, 300_000, stream=8)

    assert firing(facts(body)) == []


def test_an_asynchronous_copy_of_less_than_two_percent_of_a_step_is_no_finding():
    assert (
        firing(facts(lambda s, c: transfer(s + 1_000, c, 2 * MB, "Pinned -> Device", waits=False, took=19_000))) == []
    )


def test_a_host_that_runs_ahead_does_not_shorten_the_steps_that_copies_are_a_share_of():
    """Steps of 1 ms on the host, of 3 ms on the device."""

    def body(start: int, c: int) -> list[Event]:
        on_device = 3 * start + 100_000
        copied = transfer(start + 1_000, c, 19 * MB, "Pinned -> Device", waits=False)
        copied[2] = {**copied[2], "ts": microseconds(on_device), "dur": microseconds(300_000)}
        launched, ran = launch(start + 9_000, c + 1, 2_600_000)
        return [*copied, launched, {**ran, "ts": microseconds(on_device + 300_000)}]

    (suspect,) = accused(NOT_OVERLAPPED, facts(body))
    assert suspect.title.endswith("10% of a step")


def python_value(start: int, c: int, size: int = 4) -> list[Event]:
    """`torch.tensor(..., device="cuda")` in the middle of a step, as torch records it."""
    at = start + 300_000
    return [
        *launch(start + 100_000, c + 1, 50_000),
        operator(at, 1_000, "aten::empty"),
        *transfer(at + 2_000, c, size),
        operator(at + 30_000, 500, "aten::lift_fresh"),
        operator(at + 31_000, 500, "aten::detach_"),
    ]


def test_a_python_value_uploaded_while_computing_is_accused():
    known = facts(python_value)
    assert firing(known) == ["h2d-tiny-constant"]
    (suspect,) = accused(CONSTANT, known)
    assert len(suspect.rows) == len(suspect.change.removed) == len(suspect.change.shortened) == 4


def test_a_python_value_uploaded_before_computing_belongs_to_the_batch():
    assert firing(facts(lambda start, c: python_value(start, c)[2:])) == []


def test_a_numpy_array_is_no_python_value():
    assert firing(facts(lambda start, c: python_value(start, c)[:-1])) == []


def noise(start: int, c: int, elements: int = 32, launches: bool = False) -> list[Event]:
    """`torch.randn(...).to("cuda")`, as torch records it."""
    at = start + 200_000
    draw = with_args(operator(at, 60_000, "aten::randn"), Input_Dims=[[], []], Concrete_Inputs=["[4, 8]", ""])
    empty = with_args(operator(at + 1_000, 2_000, "aten::empty"), Input_Dims=[[]], Concrete_Inputs=["[4, 8]"])
    on_device = launch(at + 5_000, c + 1, 10_000) if launches else []
    return [draw, empty, *on_device, *transfer(at + 70_000, c, 128, dims=[elements // 8, 8])]


def test_a_tensor_drawn_on_the_host_and_moved_is_accused_with_its_factory():
    known = facts(noise)
    assert firing(known) == ["h2d-create-then-move"]
    (suspect,) = accused(CREATED, known)
    assert "by randn" in suspect.title
    assert len(suspect.change.shortened) == 8 and len(suspect.cautious.shortened) == 4
    assert len(suspect.change.removed) == 4


@pytest.mark.parametrize("different", [{"elements": 64}, {"launches": True}])
def test_another_size_or_a_factory_on_the_device_is_no_finding(different: dict[str, int]):
    assert firing(facts(lambda start, c: noise(start, c, **different))) == []


def upload_in_model(start: int, c: int, size: int = 5_000, before: bool = False) -> list[Event]:
    at = 20_000 if before else 300_000
    return [
        *launch(start + 100_000, c + 1, 50_000),
        *in_module(start, at - 5_000, 60_000),
        *transfer(start + at, c, size),
    ]


def test_the_same_bytes_from_a_line_of_the_model_in_every_step_are_accused():
    known = facts(upload_in_model)
    assert firing(known) == ["h2d-repeated-constant"]
    (suspect,) = accused(REPEATED, known)
    assert suspect.where.label == "model.py:12 forward" and suspect.confidence == "medium"
    assert len(suspect.rows) == len(suspect.change.shortened) == 4


def test_a_line_that_copies_before_anything_is_computed_brings_the_batch():
    assert firing(facts(lambda start, c: upload_in_model(start, c, before=True))) == []


def test_sizes_that_vary_are_no_constant():
    assert firing(facts(lambda start, c: upload_in_model(start, c, size=5_000 + c))) == []


def test_in_a_loop_without_a_loader_in_the_trace_a_later_copy_may_bring_a_batch():
    def body(start: int, c: int) -> list[Event]:
        line = frame(start + 290_000, 90_000, "train.py(88): step")
        return [*launch(start + 100_000, c + 1, 50_000), line, *transfer(start + 300_000, c, 5_000)]

    assert firing(facts(body)) == []


def test_in_a_loop_with_a_loader_a_copy_after_computing_is_no_batch():
    def body(start: int, c: int) -> list[Event]:
        fetch = annotation(start, 9_000, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
        line = frame(start + 290_000, 90_000, "train.py(88): step")
        return [fetch, *launch(start + 100_000, c + 1, 50_000), line, *transfer(start + 300_000, c, 5_000)]

    assert firing(facts(body)) == ["h2d-repeated-constant"]


def test_a_batch_fetched_ahead_is_no_constant():
    def body(start: int, c: int, at: int, stream: int) -> list[Event]:
        fetch = annotation(start, 9_000, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
        line = frame(start + at - 9_000, 30_000, "prefetch.py(30): preload")
        return [fetch, *launch(start + 100_000, c + 1, 50_000), line, *transfer(start + at, c, 5_000, stream=stream)]

    assert firing(facts(lambda start, c: body(start, c, 300_000, 9))) == []
    assert firing(facts(lambda start, c: body(start, c, 960_000, 7))) == []


def test_what_a_function_brings_back_from_the_host_is_no_constant():
    def body(start: int, c: int) -> list[Event]:
        away = transfer(start + 310_000, c + 2, 5_000, "Device -> Pageable")
        line = in_module(start, 290_000, 200_000)
        return [*launch(start + 100_000, c + 1, 50_000), *line, *away, *transfer(start + 360_000, c, 5_000)]

    assert firing(facts(body)) == []


def small_copies(start: int, c: int, count: int) -> list[Event]:
    return [item for i in range(count) for item in transfer(start + 20_000 * i, c + i, 4_096, took=2_000)]


def test_more_than_twenty_small_copies_a_step_are_many():
    known = facts(lambda start, c: small_copies(start, c, 25))
    assert firing(known) == ["h2d-many-small"]
    (suspect,) = accused(MANY_SMALL, known)
    assert len(suspect.rows) == 100
    assert suspect.change.host_scale == pytest.approx(1 / 25)


def test_twenty_small_copies_are_not_many():
    assert firing(facts(lambda start, c: small_copies(start, c, 20))) == []


def output(start: int, c: int, size: int = 2 << 20) -> list[Event]:
    return transfer(start + 200_000, c, size, "Device -> Pageable")


def test_large_outputs_are_accused_and_scalars_are_not():
    def body(start: int, c: int) -> list[Event]:
        return [*output(start, c), annotation(start + 800_000, 9_000, "Optimizer.step#SGD.step")]

    known = facts(body)
    assert firing(known) == ["d2h-large-output"]
    (suspect,) = accused(LARGE_OUTPUT, known)
    assert len(suspect.change.removed) == 4 and len(suspect.cautious.removed) == 0
    assert firing(facts(lambda start, c: output(start, c, 4))) == []


def test_an_output_of_inference_may_have_to_be_returned():
    (suspect,) = accused(LARGE_OUTPUT, facts(output))
    assert len(suspect.change.removed) == 0 and len(suspect.change.unblocked) == 8
    assert len(suspect.hopeful.removed) == 4


def test_the_answer_of_the_only_step_is_no_finding():
    def body(start: int, c: int) -> list[Event]:
        return transfer(start + 960_000, c, 2 << 20, "Device -> Pageable") if start == 0 else []

    assert firing(facts(body, 1)) == []
    assert firing(facts(output, 1)) == ["d2h-large-output"]


def test_what_a_checkpoint_copies_is_no_output():
    def body(start: int, c: int) -> list[Event]:
        save = frame(start + 190_000, 90_000, "torch/serialization.py(944): save")
        return [save, *transfer(start + 200_000, c, 2 << 20, "Device -> Pageable")]

    assert firing(facts(body)) == []


def offloaded(start: int, c: int, sizes: tuple[int, ...] = (1 << 20, 2 << 20, 3 << 20, 4 << 20)) -> list[Event]:
    """Each tensor goes to the device, is used, and goes back."""
    events: list[Event] = []
    for number, size in enumerate(sizes):
        at = start + 150_000 * number
        events += transfer(at, c + 3 * number, size) + launch(at + 40_000, c + 3 * number + 1, 20_000)
        events += transfer(at + 80_000, c + 3 * number + 2, size, "Device -> Pageable")
    return events


def test_tensors_of_several_sizes_that_go_both_ways_are_offloaded():
    known = facts(offloaded)
    assert firing(known) == ["offload-thrash"]
    (suspect,) = accused(OFFLOAD, known)
    assert suspect.title.startswith("Offloading copies 10.5 MB to the device and 10.5 MB back in a step")
    assert len(suspect.rows) == 32


def test_one_tensor_that_goes_both_ways_is_not_offloaded():
    known = facts(lambda start, c: offloaded(start, c, (2 << 20,)))
    assert firing(known) == ["h2d-pageable", "d2h-large-output"]


def test_a_module_that_is_moved_is_offloaded_whatever_its_sizes():
    def body(start: int, c: int) -> list[Event]:
        moving = frame(start + 190_000, 90_000, "torch/nn/modules/module.py(1160): to")
        return [moving, *transfer(start + 200_000, c, 2 << 20)]

    assert firing(facts(body)) == ["offload-thrash"]


def test_without_steps_only_sizes_that_come_again_are_accused():
    """A model that is loaded copies each weight once."""
    weights = facts(lambda start, c: transfer(start + 1_000, c, 2 * MB + c), marks=False, count=3)
    assert firing(weights) == []


def test_pinned_memory_allocated_in_every_step_is_accused():
    def body(start: int, c: int) -> list[Event]:
        return [call(start + 100_000, 50_000, 0, name="cudaHostAlloc", thread=3)]

    known = facts(body)
    (suspect,) = accused(PIN, known)
    assert suspect.change.shortened.tolist() == suspect.rows.tolist() and len(suspect.rows) == 4
    assert accused(PIN, facts(lambda start, c: body(start, c) if start == 0 else [])) == []


def test_a_tensor_pinned_in_the_step_is_accused_with_the_allocation_as_the_least():
    def body(start: int, c: int) -> list[Event]:
        return [
            operator(start + 100_000, 90_000, "aten::pin_memory"),
            call(start + 120_000, 50_000, 0, name="cudaHostAlloc"),
            *launch(start + 300_000, c, 20_000),
        ]

    (suspect,) = accused(PIN, facts(body))
    assert len(suspect.rows) == 4 == len(suspect.cautious.shortened)
    assert len(suspect.change.shortened) == 8


def test_pinning_into_blocks_that_are_there_is_no_finding():
    def body(start: int, c: int) -> list[Event]:
        return [operator(start + 100_000, 9_000, "aten::pin_memory"), *launch(start + 300_000, c, 20_000)]

    assert accused(PIN, facts(body)) == []
