"""Waiting for batches costs what the device idles for it, and one rule tells why batches are late."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from reference.reader import trace_of
from waiting_steps import STEP, accused, below, fetch, launch, names, send, steps
from written import Event, annotation, frame, kernel, mark, operator, parsed

from torchdiag.rules import (
    dataloader_epoch_restart,
    dataloader_in_process,
    dataloader_periodic_stall,
    dataloader_wait,
    host_preprocess_main_thread,
)
from torchdiag.timeline.facts.batch_waits import batch_waits
from torchdiag.timeline.facts.facts import Facts

RULES = [
    module.RULE
    for module in (
        dataloader_epoch_restart, dataloader_in_process, dataloader_periodic_stall, dataloader_wait,
        host_preprocess_main_thread,
    )
]  # fmt: skip
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
IN_PROCESS = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
LOADER = "torch/utils/data/dataloader.py"


def who(facts: Facts) -> set[str]:
    """The ids of the rules that accuse something."""
    return {rule.id for rule in RULES if accused(rule, facts)}


def training(waits_ns: Iterable[int], name: str = WORKERS, *, device: bool = True, busy_ns: int = 300_000) -> Facts:
    """Steps of 1 ms that each wait for a batch first, then launch a kernel of `busy_ns`."""
    events: list[Event] = []
    for number, wait in enumerate(waits_ns):
        start = number * STEP
        events += [mark(number, start, STEP), annotation(start + 1_000, wait, name)]
        events += launch(start + 600_000, number + 1, busy_ns) if device else [operator(start + 600_000, 300_000)]
    return Facts.of(trace_of(parsed(events), {}))


def test_waiting_for_workers_in_every_step() -> None:
    facts = training([400_000] * 6)
    (suspect,) = accused(dataloader_wait.RULE, facts)
    assert suspect.title == "The device idles 40% of the time for the next batch, in every step"
    assert names(facts, suspect.rows) == {WORKERS} and len(suspect.rows) == 6
    assert suspect.change is not None and suspect.cautious is not None
    assert np.array_equal(suspect.change.shortened, suspect.rows) and suspect.change.host_scale == 0
    assert suspect.cautious.host_scale == 0.5
    assert who(facts) == {"dataloader-wait"}


def test_only_what_the_device_idles_counts() -> None:
    # Each kernel runs until 710 us into the next step, so the device never waits for a batch.
    facts = training([400_000] * 6, busy_ns=1_100_000)
    assert sum(facts.get(batch_waits).exposed_ns[1:].tolist()) == 0
    assert who(facts) == set()


def test_waiting_now_and_then_is_told_with_its_steps() -> None:
    facts = training([400_000 if number in (1, 2, 5) else 1_000 for number in range(10)])
    (suspect,) = accused(dataloader_wait.RULE, facts)
    assert "in 3 of 10 steps" in suspect.title and suspect.confidence == "medium"


def test_one_late_batch_is_no_rule() -> None:
    assert who(training([400_000 if number == 3 else 1_000 for number in range(8)])) == set()


@pytest.mark.parametrize("name", [WORKERS, IN_PROCESS])
def test_handing_over_a_batch_is_no_wait(name: str) -> None:
    assert who(training([150_000] * 6, name)) == set()


def test_without_a_device_the_share_of_the_step_decides() -> None:
    (suspect,) = accused(dataloader_wait.RULE, training([400_000] * 6, device=False))
    assert suspect.title.startswith("The program waits 40% of the time for the next batch")


def test_work_of_a_device_that_was_not_recorded_cannot_be_judged() -> None:
    events: list[Event] = []
    for number in range(6):
        start = number * STEP
        events += [
            mark(number, start, STEP),
            annotation(start + 1_000, 400_000, WORKERS),
            launch(start + 600_000, 1)[0],
        ]
    unrecorded = Facts.of(trace_of(parsed(events), {}))
    assert unrecorded.has_quality("gpu-not-recorded")
    (suspect,) = accused(dataloader_wait.RULE, unrecorded)
    assert suspect.verdict == "cannot-tell" and "ProfilerActivity.CUDA" in suspect.reason


def test_a_queue_of_ones_own_is_waited_for_too() -> None:
    def body(start: int, c: int) -> list[Event]:
        return [frame(start + 100_000, 400_000, "queue.py(154): get"), *launch(start + 600_000, c)]

    facts = steps(body)
    (suspect,) = accused(dataloader_wait.RULE, facts)
    assert names(facts, suspect.rows) == {"queue.py(154): get"}


def test_batches_made_by_the_training_process() -> None:
    facts = training([400_000] * 6, IN_PROCESS)
    (suspect,) = accused(dataloader_in_process.RULE, facts)
    assert "40% of the time while the training process itself makes the next batch" in suspect.title
    assert "num_workers=4" in suspect.fix and len(suspect.rows) == 6
    assert who(facts) == {"dataloader-in-process"}


def test_the_slowest_function_of_the_dataset_is_named() -> None:
    def body(start: int, c: int) -> list[Event]:
        return [
            *below(("train.py(10): main", f"{LOADER}(720): __next__", IN_PROCESS), start + 50_000, 400_000),
            frame(start + 60_000, 300_000, "dataset.py(31): __getitem__"),
            operator(start + 70_000, 200_000, "aten::randn"),
            frame(start + 370_000, 20_000, "dataset.py(50): collate"),
            *launch(start + 600_000, c),
        ]

    facts = steps(body)
    (suspect,) = accused(dataloader_in_process.RULE, facts)
    assert "75% of it in dataset.py:31 __getitem__" in suspect.reason
    assert suspect.fix.endswith("first speed up dataset.py:31 __getitem__.")
    assert names(facts, suspect.rows) == {f"{LOADER}(720): __next__"}
    assert who(facts) == {"dataloader-in-process"}


def test_one_late_batch_in_so_many_is_a_rhythm() -> None:
    facts = training([400_000 if number % 4 == 3 else 2_000 for number in range(16)])
    (suspect,) = accused(dataloader_periodic_stall.RULE, facts)
    assert suspect.title == "Every 4 batches one is 0.4 ms late"
    assert len(suspect.rows) == 4
    assert set(facts.trace.dur_ns[suspect.rows].tolist()) == {400_000}
    assert who(facts) == {"dataloader-periodic-stall"}


def test_late_batches_without_a_rhythm_are_ordinary_waits() -> None:
    facts = training([400_000 if number in (3, 7, 12, 14) else 2_000 for number in range(16)])
    assert who(facts) == {"dataloader-wait"}


def test_something_else_with_a_rhythm_is_not_the_loaders() -> None:
    def body(start: int, c: int) -> list[Event]:
        late = [frame(start + 100_000, 400_000, "train.py(60): log")] if start // STEP % 4 == 3 else []
        return [annotation(start + 50_000, 2_000, WORKERS), *late, *launch(start + 600_000, c)]

    assert "dataloader-periodic-stall" not in who(steps(body, count=16))


def epochs(restarts: Iterable[int], inside: str = "multiprocessing/popen_fork.py(62): _launch") -> Facts:
    """Twelve steps with stacks; before the batch of some of them the loader begins anew."""
    again = set(restarts)

    def body(start: int, c: int) -> list[Event]:
        begins = below((f"{LOADER}(492): __iter__", f"{LOADER}(433): _get_iterator", inside), start + 60_000, 200_000)
        fetched = annotation(start + 300_000, 250_000 if start // STEP in again else 2_000, WORKERS)
        return [*(begins if start // STEP in again else []), fetched, *launch(start + 600_000, c)]

    return steps(body, count=12)


def test_workers_started_anew_every_epoch() -> None:
    facts = epochs([3, 7, 11])
    (suspect,) = accused(dataloader_epoch_restart.RULE, facts)
    assert suspect.title == "The loader starts its workers anew every 4 steps: 0.45 ms each time"
    assert names(facts, suspect.rows) == {f"{LOADER}(492): __iter__"} and len(suspect.rows) == 3
    assert suspect.change is not None and suspect.cautious is not None
    assert names(facts, suspect.change.shortened) == {f"{LOADER}(492): __iter__", WORKERS}
    assert np.array_equal(suspect.cautious.shortened, suspect.rows)
    assert who(facts) == {"dataloader-epoch-restart"}


def test_the_first_start_cannot_be_saved_and_an_iterator_without_processes_starts_none() -> None:
    assert "dataloader-epoch-restart" not in who(epochs([0]))
    assert "dataloader-epoch-restart" not in who(epochs([4], inside=f"{LOADER}(758): __init__"))


def test_without_stacks_a_late_first_batch_is_told_as_what_it_may_be() -> None:
    events: list[Event] = []
    for number in range(12):
        start = number * STEP
        events.append(mark(number, start, STEP))
        if number == 6:  # the epoch's end, then the first batch of the next
            events.append(annotation(start + 1_000, 500, WORKERS))
        events.append(annotation(start + 5_000, 400_000 if number == 6 else 2_000, WORKERS))
        events += launch(start + 600_000, number + 1, 300_000)
    facts = Facts.of(trace_of(parsed(events), {}))
    (suspect,) = accused(dataloader_epoch_restart.RULE, facts)
    assert suspect.verdict == "cannot-tell" and "with_stack=True" in suspect.reason
    assert len(suspect.rows) == 1 and facts.trace.dur_ns[suspect.rows[0]] == 400_000


def worked(*events: Callable[[int], Event], count: int = 4) -> Facts:
    return steps(lambda start, _: [make(start) for make in events], count=count)


@pytest.mark.parametrize(
    "name",
    [
        "torchvision/transforms/transforms.py(94): __call__",
        "PIL/Image.py(2200): resize",
        "matplotlib/pyplot.py(3000): savefig",
        "transformers/image_transforms.py(390): normalize",
        "<built-in method resize of ImagingCore object at 0x7f>",
    ],
)
def test_a_library_that_works_on_data_between_launches(name: str) -> None:
    facts = steps(
        lambda start, c: [
            frame(start + 60_000, 800_000, "train.py(20): loop"),
            frame(start + 100_000, 500_000, name),
            *launch(start + 700_000, c),
        ]
    )
    (suspect,) = accused(host_preprocess_main_thread.RULE, facts)
    assert names(facts, suspect.rows) == {name} and len(suspect.rows) == 4
    assert "idles 50% of the time" in suspect.title and suspect.confidence == "high"
    assert suspect.change is not None and np.array_equal(suspect.change.shortened, suspect.rows)


def test_the_function_that_calls_the_libraries_is_accused_if_it_launches_nothing() -> None:
    facts = worked(
        lambda start: frame(start + 50_000, 10_000, "data.py(3): ready"),
        lambda start: frame(start + 100_000, 500_000, "augment.py(33): __call__"),
        lambda start: frame(start + 110_000, 200_000, "PIL/Image.py(2364): resize"),
        lambda start: frame(start + 320_000, 200_000, "PIL/Image.py(2364): resize"),
    )
    (suspect,) = accused(host_preprocess_main_thread.RULE, facts)
    assert suspect.where.label == "augment.py:33 __call__" and len(suspect.rows) == 4
    assert "80% of it in Image.py:2364 resize" in suspect.reason


def test_a_transform_that_runs_on_the_device_is_no_host_work() -> None:
    def body(start: int, c: int) -> list[Event]:
        return [
            frame(start + 100_000, 500_000, "torchvision/transforms/v2/_transform.py(40): forward"),
            *launch(start + 300_000, c),
        ]

    assert who(steps(body)) == set()


def test_host_work_while_the_device_is_busy_costs_nothing() -> None:
    def body(start: int, c: int) -> list[Event]:
        return [frame(start + 100_000, 500_000, "PIL/Image.py(2200): resize"), kernel(start + 60_000, 700_000, 0)]

    assert who(steps(body)) == set()


def test_the_loaders_own_work_is_not_the_loops() -> None:
    def body(start: int, c: int) -> list[Event]:
        return [
            annotation(start + 60_000, 500_000, IN_PROCESS),
            frame(start + 100_000, 400_000, "PIL/Image.py(2200): resize"),
        ]

    assert who(steps(body)) == {"dataloader-in-process"}


def test_numpy_within_a_round_trip_is_the_trips() -> None:
    def body(start: int, c: int) -> list[Event]:
        return [frame(start + 90_000, 700_000, "matcher.py(20): forward"), *fetch(start + 100_000, c),
                frame(start + 200_000, 400_000, "scipy/optimize/_lsap.py(10): linear_sum_assignment"),
                *send(start + 700_000, c + 1)]  # fmt: skip

    assert who(steps(body)) == set()


def before_the_first_launch(*events: Callable[[int], Event]) -> Facts:
    made: list[Event] = []
    for number in range(4):
        start = number * STEP
        made += [mark(number, start, STEP), annotation(start + 1_000, 5_000, WORKERS)]
        made += [*(make(start) for make in events), *launch(start + 700_000, number + 1, 200_000)]
    return Facts.of(trace_of(parsed(made), {}))


def test_a_persons_function_before_the_first_launch() -> None:
    facts = before_the_first_launch(
        lambda start: frame(start + 10_000, 980_000, "train.py(20): loop"),
        lambda start: frame(start + 100_000, 500_000, "augment.py(7): augment"),
    )
    (suspect,) = accused(host_preprocess_main_thread.RULE, facts)
    assert suspect.where.label == "augment.py:7 augment" and suspect.confidence == "medium"
    assert "100% of it in augment.py:7 augment" in suspect.reason


@pytest.mark.parametrize(("name", "guilty"), [("aten::div", True), ("aten::randn", False), ("aten::pin_memory", False)])
def test_operators_on_the_host_before_the_first_launch(name: str, guilty: bool) -> None:
    facts = before_the_first_launch(lambda start: operator(start + 100_000, 500_000, name))
    assert who(facts) == ({"host-preprocess-main-thread"} if guilty else set())


def test_work_in_the_first_step_alone_is_no_rule() -> None:
    facts = before_the_first_launch(
        lambda start: frame(start + 100_000, 500_000 if start == 0 else 1_000, "PIL/Image.py(2200): resize")
    )
    assert who(facts) == set()
