"""Rules about device memory: who asks the driver, who empties the cache, and what grows."""

import numpy as np
import pytest
from device_steps import STEP, Event, accused, facts, launch, operator, with_args
from reference.reader import trace_of
from written import Number, call, event, frame, kernel, mark, parsed

from torchdiag.rules.alloc_cudamalloc_steady import RULE as STEADY
from torchdiag.rules.alloc_retry_flush import RULE as RETRY
from torchdiag.rules.empty_cache_in_loop import RULE as EMPTY
from torchdiag.rules.graph_retention_growth import RULE as GROWTH
from torchdiag.timeline.facts.facts import Facts


def firing(known: Facts) -> list[str]:
    return [rule.id for rule in (STEADY, RETRY, EMPTY) if accused(rule, known)]


def malloc(at: int, name: str = "cudaMalloc") -> list[Event]:
    """A call for memory inside the operator that needs it."""
    return [operator(at, 30_000, "aten::empty"), call(at + 1_000, 20_000, 0, name=name)]


def frees(at: int, count: int = 3) -> list[Event]:
    return [call(at + 12_000 * number, 10_000, 0, name="cudaFree") for number in range(count)]


@pytest.mark.parametrize("name", ["cudaMalloc", "hipMalloc", "cuMemCreate"])
def test_memory_taken_in_every_step_is_accused(name: str):
    known = facts(lambda start, c: malloc(start + 200_000, name))
    assert firing(known) == ["alloc-cudamalloc-steady"]
    (suspect,) = accused(STEADY, known)
    assert suspect.title == "The allocator asks the driver for device memory 1 times a step, mostly at aten::empty"
    assert len(suspect.rows) == 4 and suspect.change.shortened.tolist() == suspect.rows.tolist()
    assert ("expandable_segments" in suspect.fix) == (name != "cuMemCreate")  # which maps memory: they are on


@pytest.mark.parametrize("count", [1, 2])
def test_memory_taken_only_in_the_first_steps_is_warming_up(count: int):
    assert firing(facts(lambda start, c: malloc(start + 200_000) if start < count * STEP else [])) == []


def test_two_steps_are_too_few_to_tell_that_the_allocator_has_stopped_growing():
    assert firing(facts(lambda start, c: malloc(start + 200_000), 2)) == []


def test_memory_taken_less_and_less_is_warming_up():
    def body(start: int, c: int) -> list[Event]:
        return [item for i in range(max(1, 8 - 4 * (start // STEP))) for item in malloc(start + 50_000 * i)]

    assert firing(facts(body)) == []


def test_a_step_that_captures_a_graph_may_take_memory():
    def body(start: int, c: int) -> list[Event]:
        return [call(start + 100_000, 9_000, 0, name="cudaStreamBeginCapture"), *malloc(start + 200_000)]

    assert firing(facts(body)) == []


def test_pinned_and_asynchronous_allocations_are_others_business():
    known = facts(
        lambda start, c: malloc(start + 200_000, "cudaHostAlloc") + malloc(start + 300_000, "cudaMallocAsync")
    )
    assert firing(known) == []


def test_an_emptied_cache_is_accused_with_the_memory_that_is_taken_anew():
    def body(start: int, c: int) -> list[Event]:
        return [
            *malloc(start + 100_000),
            *malloc(start + 150_000),
            *launch(start + 300_000, c, 9_000),
            *frees(start + 800_000),
        ]

    known = facts(body)
    assert firing(known) == ["empty-cache-in-loop"]
    (suspect,) = accused(EMPTY, known)
    assert suspect.title == "The memory cache is emptied in every step: 3 blocks freed, 2 taken anew"
    assert len(suspect.rows) == 4 and len(suspect.change.shortened) == 8 and len(suspect.cautious.unblocked) == 12
    assert suspect.confidence == "medium"


def test_with_stacks_only_empty_cache_itself_is_accused():
    def body(start: int, c: int, name: str) -> list[Event]:
        around = frame(start + 790_000, 60_000, name)
        return [around, *malloc(start + 100_000), *launch(start + 300_000, c, 9_000), *frees(start + 800_000)]

    known = facts(lambda start, c: body(start, c, "torch/cuda/memory.py(224): empty_cache"))
    (suspect,) = accused(EMPTY, known)
    assert suspect.confidence == "high"
    assert accused(EMPTY, facts(lambda start, c: body(start, c, "train.py(9): clean"))) == []


def test_a_cache_emptied_once_is_no_finding():
    assert firing(facts(lambda start, c: frees(start + 500_000) if start == 2 * STEP else [], 5)) == []


def retry(start: int, c: int) -> list[Event]:
    """A refused allocation: inside one operator the cache is freed and memory asked for again."""
    at = start + 200_000
    return [
        operator(at, 90_000, "aten::empty"),
        call(at + 1_000, 2_000, 0, name="cudaMalloc"),
        *frees(at + 5_000),
        call(at + 50_000, 20_000, 0, name="cudaMalloc"),
    ]


def test_refused_allocations_are_accused_whenever_they_happen():
    known = facts(lambda start, c: retry(start, c) if start in (STEP, 3 * STEP) else [])
    assert firing(known) == ["alloc-retry-flush"]
    (suspect,) = accused(RETRY, known)
    assert suspect.title.startswith("2 allocations in 4 steps were refused and tried again")
    assert len(suspect.rows) == 2 and len(suspect.change.shortened) == 4 and len(suspect.change.unblocked) == 6


def test_one_refused_allocation_may_be_a_longest_batch():
    assert firing(facts(lambda start, c: retry(start, c) if start == STEP else [])) == []


def test_a_launch_between_freeing_and_taking_is_no_retry():
    def body(start: int, c: int) -> list[Event]:
        at = start + 200_000
        return [*retry(start, c)[:-1], *launch(at + 42_000, c, 9_000), retry(start, c)[-1]]

    assert firing(facts(retry)) == ["alloc-retry-flush"]
    assert "alloc-retry-flush" not in firing(facts(body))


def test_where_nothing_is_cached_that_is_said():
    def body(start: int, c: int) -> list[Event]:
        events: list[Event] = []
        for number in range(25):
            at = start + 30_000 * number
            events += [operator(at, 8_000, "aten::empty"), call(at + 1_000, 5_000, 0, name="cudaMalloc")]
            events += launch(at + 10_000, c + number, 2_000) + frees(at + 18_000, 1)
        return events

    known = facts(body)
    assert firing(known) == ["alloc-cudamalloc-steady"]
    (suspect,) = accused(STEADY, known)
    assert suspect.title.startswith("Nothing is cached: the driver is asked for device memory 25 times a step")


def trained(nodes: list[int], allocated: list[int] | None = None, forward: int = 3) -> Facts:
    """Steps with some backward nodes each, and with an event for the memory allocated at their end."""
    events: list[Event] = []
    for number, count in enumerate(nodes):
        start = number * STEP
        events.append(mark(number, start, STEP))
        events += [operator(start + 10_000 * i, 5_000, "aten::mm") for i in range(forward)]
        name = "autograd::engine::evaluate_function: MmBackward0"
        events += [operator(start + 300_000 + 5_000 * i, 4_000, name, thread=2) for i in range(count)]
        if allocated is not None:
            args = {"Total Allocated": Number(allocated[number]), "Device Type": Number(1), "Device Id": Number(0)}
            instant = event("cpu_instant_event", "[memory]", start + 900_000, 0, (100, 1), args)
            events.append({**instant, "ph": "i", "s": "t"})
    return Facts.of(trace_of(parsed(events), {}))


def test_a_backward_pass_that_grows_is_accused():
    (suspect,) = accused(GROWTH, trained([4, 8, 12, 16, 20]))
    assert suspect.title == "The backward pass grows with every step: 4 nodes in the first of 5 steps, 20 in the last"
    assert len(suspect.rows) == 60 and suspect.change is None


@pytest.mark.parametrize(
    "nodes", [[4, 4, 4, 4, 4], [4, 8, 12, 16], [4, 8, 9, 9, 9], [0, 0, 0, 0, 0], [4, 30, 31, 32, 33]]
)
def test_a_backward_pass_that_stays_or_settles_is_no_finding(nodes: list[int]):
    assert accused(GROWTH, trained(nodes)) == []


def test_memory_that_grows_to_the_end_of_training_is_accused():
    (suspect,) = accused(GROWTH, trained([4] * 6, [i << 20 for i in range(6)]))
    assert suspect.title == "Allocated memory grows by 1.05 MB with every one of 6 steps"
    assert len(suspect.rows) == 6


@pytest.mark.parametrize(
    ("nodes", "megabytes"),
    [
        ([4] * 6, [1, 5, 9, 9, 9, 9]),  # a cache that is full
        ([4] * 6, [1, 2, 3, 2, 3, 4]),
        ([4] * 4, [1, 2, 3, 4]),  # too few steps
        ([0] * 6, [1, 2, 3, 4, 5, 6]),  # inference: keys and values
        ([4] * 6, [1, 40, 41, 42, 43, 44]),  # the state of an optimizer, then noise
    ],
)
def test_memory_that_settles_or_serves_inference_is_no_finding(nodes: list[int], megabytes: list[int]):
    assert accused(GROWTH, trained(nodes, [size << 20 for size in megabytes])) == []


def test_the_reserved_share_is_told_where_the_trace_knows_it():
    events = [mark(n, n * STEP, STEP) for n in range(4)] + [kernel(10_000, 9_000), kernel(3 * STEP + 10_000, 9_000)]
    events += [item for n in range(4) for item in retry(n * STEP, 0)]
    args = {"Total Reserved": 95, "Total Allocated": 90, "Device Type": 1, "Device Id": 0}
    note = with_args(event("cpu_instant_event", "[memory]", 500_000, 0, (100, 1), {}))
    note = {**note, "ph": "i", "args": {name: Number(value) for name, value in args.items()}}
    trace = trace_of(parsed([*events, note]), {"deviceProperties": [{"totalGlobalMem": Number(100)}]})
    (suspect,) = accused(RETRY, Facts.of(trace))
    assert "up to 95% of the device's memory was reserved" in suspect.reason
    assert np.all(np.diff(suspect.rows) > 0)
