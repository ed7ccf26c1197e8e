"""Rules about work shared by several processes: each accuses its own signature, and none what it cannot tell."""

from collections.abc import Iterable

import numpy as np
import pytest
from device_steps import STEP, Event, accused, facts, launch, operator, with_args
from reference.reader import trace_of
from written import annotation, call, frame, kernel, mark, parsed

from torchdiag.rules.comm_exposed import RULE as EXPOSED
from torchdiag.rules.comm_many_small import RULE as MANY_SMALL
from torchdiag.rules.comm_straggler import RULE as STRAGGLER
from torchdiag.rules.dataparallel_in_use import RULE as DATA_PARALLEL
from torchdiag.rules.ddp_find_unused import RULE as FIND_UNUSED
from torchdiag.rules.ddp_grad_copies import RULE as GRAD_COPIES
from torchdiag.rules.ddp_sync_every_microstep import RULE as MICRO_STEP
from torchdiag.rules.fsdp_no_prefetch import RULE as NO_PREFETCH
from torchdiag.rules.step_side_jobs import RULE as SIDE_JOBS
from torchdiag.timeline.facts.collectives import element_bytes, kind_of
from torchdiag.timeline.facts.facts import Facts

MUL_OUT = "torch::distributed::reducer::mul_out"
COPY_OUT = "torch.distributed.ddp.reducer::copy_bucket_to_grad"
SEARCH = "torch.distributed.ddp.reducer::search_unused_parameters"
NCCL_RULES = (FIND_UNUSED, MICRO_STEP, MANY_SMALL, NO_PREFETCH, EXPOSED)


def firing(known: Facts) -> list[str]:
    """The ids of the rules about collectives that accuse anything; no two accuse the same device activity."""
    found = {rule.id: [suspect.rows for suspect in accused(rule, known)] for rule in NCCL_RULES}
    rows = np.concatenate([np.empty(0, np.int64), *(rows for told in found.values() for rows in told)])
    assert len(set(rows.tolist())) == len(rows)
    return [name for name, told in found.items() if told]


def collective(
    at: int, correlation: int, took: int, name: str = "allreduce", *, elements: int = 1 << 20, dtype: str = "Float"
) -> list[Event]:
    """A collective as NCCL is recorded: operators, the launch, and its kernel 10 us later on a stream of its own."""
    args = {"Collective_name": name, "In_msg_nelems": elements, "Out_msg_nelems": elements, "dtype": dtype}
    run = kernel(at + 10_000, took, correlation, name="ncclDevKernel_" + name, stream=20)
    return [
        operator(at, 9_000, f"c10d::{name}_"),
        with_args(operator(at + 1_000, 7_000, "record_param_comms"), **args, Group_size=8),
        call(at + 2_000, 4_000, correlation),
        with_args(run, **args, Group_size=8),
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", "allreduce"),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_float", "reducescatter"),
        ("c10d::_allgather_base_", "allgather"),
        ("nccl:all_to_all", "alltoall"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "sendrecv"),
        ("gemm", ""),
    ],
)
def test_the_kind_of_a_collective_is_told_by_any_name_of_it(name: str, kind: str):
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    ("dtype", "size"), [("Float", 4), ("c10::BFloat16", 2), ("Long", 8), ("Float8_e4m3fn", 1), ("?", 0)]
)
def test_bytes_of_an_element(dtype: str, size: int):
    assert element_bytes(dtype) == size


def test_collectives_with_nothing_computing_are_accused_all_but_the_last_of_a_step():
    def body(start: int, c: int) -> list[Event]:
        return collective(start + 100_000, c, 100_000) + collective(start + 300_000, c + 1, 50_000)

    known = facts(body)
    assert firing(known) == ["comm-exposed"]
    (suspect,) = accused(EXPOSED, known)
    assert suspect.title.startswith(
        "allreduce runs with nothing computing for 0.15 ms a step (15% of it, 2 collectives)"
    )
    assert len(suspect.rows) == 8 == len(suspect.hopeful.removed)
    assert len(suspect.change.removed) == 4 and len(suspect.cautious.removed) == 0


def test_hidden_and_short_collectives_are_no_finding():
    hidden = facts(lambda s, c: collective(s + 100_000, c, 100_000) + launch(s + 95_000, c + 1, 200_000))
    assert firing(hidden) == []
    assert firing(facts(lambda start, c: collective(start + 100_000, c, 15_000))) == []


def test_a_process_that_is_alone_communicates_with_nobody():
    events: list[Event] = []
    for number in range(4):
        start = number * STEP
        events += [mark(number, start, STEP), *collective(start + 100_000, 1 + number, 100_000)]
        events += launch(start + 800_000, 101 + number, 9_000)
    one, eight = (trace_of(parsed(events), {"distributedInfo": {"world_size": size}}) for size in (1, 8))
    assert firing(Facts.of(one)) == []
    assert firing(Facts.of(eight)) == ["comm-exposed"]


def test_collectives_that_vary_only_ask_for_other_traces():
    def body(start: int, c: int, late: int) -> list[Event]:
        return collective(start + 100_000, c, 20_000 if start == 0 else late)

    (suspect,) = accused(STRAGGLER, facts(lambda start, c: body(start, c, 200_000)))
    assert suspect.verdict == "cannot-tell" and suspect.change is None
    assert "record all ranks" in suspect.reason
    assert len(suspect.rows) == 3
    assert accused(STRAGGLER, facts(lambda start, c: body(start, c, 30_000))) == []


def test_collectives_of_different_sizes_are_never_compared():
    def body(start: int, c: int) -> list[Event]:
        return collective(start + 100_000, c, 20_000 + start // 5, elements=1 << 20 | start)

    assert accused(STRAGGLER, facts(body)) == []


def small_ones(start: int, c: int, count: int = 25, elements: int = 1) -> list[Event]:
    return [e for i in range(count) for e in collective(start + 30_000 * i, c + i, 5_000, elements=elements)]


def test_many_small_collectives_are_accused_and_one_a_step_stays():
    known = facts(small_ones)
    assert firing(known) == ["comm-many-small"]
    (suspect,) = accused(MANY_SMALL, known)
    assert suspect.title.startswith("25 collectives a step carry a median of 4 bytes each")
    assert len(suspect.rows) == 100 and len(suspect.change.removed) == 96 == len(suspect.change.shortened)


@pytest.mark.parametrize("different", [{"count": 20}, {"elements": 1 << 20}])
def test_few_or_large_collectives_are_not_many_small_ones(different: dict[str, int]):
    assert "comm-many-small" not in firing(facts(lambda start, c: small_ones(start, c, **different)))


def test_many_small_collectives_that_are_hidden_cost_nothing():
    known = facts(lambda start, c: small_ones(start, c) + launch(start, c + 100, 900_000))
    assert firing(known) == []


def searching(start: int, c: int) -> list[Event]:
    """A step of DistributedDataParallel that looks for unused parameters."""
    return [
        annotation(start + 10_000, 60_000, "DistributedDataParallel.forward"),
        operator(start + 40_000, 9_000, SEARCH),
        operator(start + 50_000, 9_000, "_DDPSink"),
        *collective(start + 300_000, c, 10_000, elements=50, dtype="Int"),
    ]


def test_the_search_for_unused_parameters_is_accused_with_its_all_reduce():
    known = facts(searching)
    assert firing(known) == ["ddp-find-unused"]
    (suspect,) = accused(FIND_UNUSED, known)
    assert len(suspect.rows) == 4 == len(suspect.change.removed)
    assert len(suspect.change.shortened) == 12  # the search, its sink, and the all-reduce


def test_a_search_in_one_step_is_no_finding():
    assert firing(facts(lambda start, c: searching(start, c) if start == STEP else [])) == []


def accumulating(start: int, c: int, synced: Iterable[int]) -> list[Event]:
    """Three micro-steps and a step of the optimizer; those of `synced` reduce their gradients."""
    events: list[Event] = []
    for number in range(3):
        at = start + 200_000 * number
        events.append(annotation(at, 50_000, "DistributedDataParallel.forward"))
        events += launch(at + 10_000, c + 10 * number, 30_000)
        if number in synced:
            events += [operator(at + 60_000, 5_000, MUL_OUT), *collective(at + 70_000, c + 10 * number + 1, 20_000)]
            events.append(operator(at + 110_000, 5_000, COPY_OUT))
    return [*events, annotation(start + 800_000, 50_000, "Optimizer.step#SGD.step")]


def test_reducing_in_every_micro_step_is_accused_but_for_the_last():
    known = facts(lambda start, c: accumulating(start, c, (0, 1, 2)))
    (suspect,) = accused(MICRO_STEP, known)
    assert suspect.title.endswith("in each of 3 micro-steps to an optimizer step: 2 times a step in vain")
    assert len(suspect.rows) == 8 == len(suspect.change.removed)
    assert len(suspect.change.shortened) == 24  # the all-reduce and the reducer's two operators
    assert firing(known) == ["ddp-sync-every-microstep", "comm-exposed"]


@pytest.mark.parametrize("synced", [(2,), (1, 2), ()])
def test_micro_steps_that_do_not_all_reduce_are_no_finding(synced: tuple[int, ...]):
    assert accused(MICRO_STEP, facts(lambda start, c: accumulating(start, c, synced))) == []


def test_reducing_once_a_step_of_the_optimizer_is_no_finding():
    def body(start: int, c: int) -> list[Event]:
        return [*accumulating(start, c, (0,))[:6], annotation(start + 800_000, 50_000, "Optimizer.step#SGD.step")]

    assert accused(MICRO_STEP, facts(body)) == []


def test_gradients_copied_out_of_buckets_are_accused_but_for_micro_steps_in_vain():
    def plain(start: int, c: int) -> list[Event]:
        copies = [operator(start + 500_000, 9_000, COPY_OUT), *launch(start + 501_000, c, 2_000)]
        return [operator(start + 300_000, 9_000, MUL_OUT), *launch(start + 301_000, c + 1, 2_000), *copies]

    (suspect,) = accused(GRAD_COPIES, facts(plain))
    assert len(suspect.rows) == 4 == len(suspect.change.removed) == len(suspect.change.shortened)
    assert len(suspect.hopeful.removed) == 8
    (suspect,) = accused(GRAD_COPIES, facts(lambda start, c: accumulating(start, c, (0, 1, 2))))
    assert len(suspect.rows) == 4


def test_buckets_that_the_gradients_are_views_of_are_no_finding():
    assert accused(GRAD_COPIES, facts(lambda start, c: [operator(start + 300_000, 9_000, MUL_OUT)])) == []


def sharded(start: int, c: int, *, late_host: bool = False) -> list[Event]:
    """Two units of FSDP: each is gathered, then its kernel runs."""
    events: list[Event] = []
    for number in range(2):
        at, kernel_at = start + 300_000 * number, start + 300_000 * number + 160_000
        events.append(annotation(at, 20_000, f"FSDP::pre_forward ({number})"))
        events += collective(at + 1_000, c + 2 * number, 140_000, "allgather")
        launched = at + (152_000 if late_host else 30_000)
        events += [call(launched, 4_000, c + 2 * number + 1), kernel(kernel_at, 50_000, c + 2 * number + 1)]
    return events


def test_parameters_gathered_when_a_kernel_already_waits_for_them_are_accused():
    known = facts(sharded)
    assert firing(known) == ["fsdp-no-prefetch", "comm-exposed"]  # the first gather of a step cannot come earlier
    (suspect,) = accused(NO_PREFETCH, known)
    assert suspect.title == "1 all-gathers a step hold up the layers they are for, 0.14 ms with nothing computing"
    assert len(suspect.rows) == 4 and suspect.change.removed.tolist() == suspect.rows.tolist()


def test_where_the_host_is_late_gathering_ahead_is_not_asked_for():
    known = facts(lambda start, c: sharded(start, c, late_host=True))
    assert [suspect for suspect in accused(NO_PREFETCH, known) if suspect.change is not None] == []


def test_all_gathers_without_sharded_parameters_are_no_finding():
    known = facts(lambda start, c: [e for e in sharded(start, c) if not e["name"].startswith("FSDP")])
    assert accused(NO_PREFETCH, known) == []


def test_a_model_that_is_one_unit_needs_another_recording():
    known = facts(lambda start, c: sharded(start, c)[:7])
    (suspect,) = accused(NO_PREFETCH, known)
    assert suspect.verdict == "cannot-tell" and suspect.change is None


def replicated(start: int, c: int) -> list[Event]:
    names = ("Scatter", "Broadcast", "Gather")
    return [
        e
        for i, name in enumerate(names)
        for e in [operator(start + 100_000 * i, 50_000, name), *launch(start + 100_000 * i + 5_000, c + i, 9_000)]
    ]


def test_data_parallel_is_accused_with_what_it_moves():
    (suspect,) = accused(DATA_PARALLEL, facts(replicated))
    assert len(suspect.rows) == 4 and len(suspect.change.shortened) == 12 == len(suspect.change.removed)


def test_a_gather_alone_is_no_data_parallel():
    assert accused(DATA_PARALLEL, facts(lambda start, c: replicated(start, c)[-3:])) == []


def test_with_stacks_replicating_tells_data_parallel():
    def body(start: int, c: int) -> list[Event]:
        return [
            frame(start + 90_000, 80_000, "torch/nn/parallel/replicate.py(80): replicate"),
            *replicated(start, c)[3:6],
        ]

    (suspect,) = accused(DATA_PARALLEL, facts(body))
    assert len(suspect.change.shortened) == 4 and len(suspect.change.removed) == 4


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("torch/serialization.py(944): save", "A checkpoint is written"),
        ("torch/distributed/distributed_c10d.py(4121): all_gather_object", "Python objects are communicated"),
        ("subprocess.py(506): run", "Another program is started"),
    ],
)
def test_jobs_inside_the_step_are_accused_once_a_happening(name: str, title: str):
    def body(start: int, c: int) -> list[Event]:
        inner = frame(start + 310_000, 50_000, "torch/serialization.py(1183): _save")
        return [frame(start + 290_000, 200_000, "train.py(88): step"), frame(start + 300_000, 100_000, name), inner]

    found = [s for s in accused(SIDE_JOBS, facts(body)) if s.title.startswith(title)]
    assert [s.title for s in found] == [f"{title} 4 times in 4 of 4 steps at train.py:88 step"]
    assert len(found[0].rows) == 4 and found[0].confidence == "high"


def test_a_job_of_some_steps_may_be_rarer_than_in_the_recording():
    def body(start: int, c: int) -> list[Event]:
        return [operator(start + 300_000, 90_000, "c10d::barrier")] if start == STEP else []

    (suspect,) = accused(SIDE_JOBS, facts(body))
    assert suspect.title == "Processes meet at a barrier once in 1 of 4 steps at c10d::barrier"
    assert suspect.confidence == "low"


def test_reading_a_checkpoint_is_no_saving():
    known = facts(lambda start, c: [frame(start + 300_000, 90_000, "torch/serialization.py(1400): load")])
    assert accused(SIDE_JOBS, known) == []
