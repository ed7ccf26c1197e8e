import gc
import threading

import pytest

from torchdiag.capture.clock import now_ns
from torchdiag.capture.gc_recorder import GcRecorder


@pytest.fixture(autouse=True)
def manual():
    """Only the collections that a test asks for."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def cycles(count):
    for _ in range(count):
        ring = []
        ring.append(ring)


def test_collections_by_step_and_generation():
    with GcRecorder() as recorder:
        cycles(5)
        gc.collect(0)
        recorder.step()
        recorder.step()
        gc.collect(1)
        cycles(7)
        gc.collect()
        gc.collect()
    summary = recorder.summary()
    assert [step.count for step in summary.steps] == [1, 0, 3]
    found = {sums.generation: (sums.count, sums.collected) for sums in summary.steps[2].generations}
    assert found[1][0] == 1
    assert found[2] == (2, 7)
    (first,) = summary.steps[0].generations
    assert (first.generation, first.count, first.collected, first.uncollectable) == (0, 1, 5, 0)
    assert [sums.generation for sums in summary.generations] == [0, 1, 2]
    assert sum(sums.total_ns for sums in summary.generations) == sum(step.total_ns for step in summary.steps)


def test_slices():
    before = now_ns()
    with GcRecorder() as recorder:
        gc.collect()
        recorder.step()
        thread = threading.Thread(target=gc.collect)
        thread.start()
        thread.join()
        native = thread.native_id
    after = now_ns()
    first, second = recorder.summary().slices
    assert before < first.start_ns < first.end_ns <= second.start_ns < second.end_ns < after
    assert (first.step, second.step) == (0, 1)
    assert (first.thread_id, second.thread_id) == (threading.get_native_id(), native)
    assert first.generation == second.generation == 2
    longest = max(item.end_ns - item.start_ns for item in (first, second))
    assert recorder.summary().generations[0].longest_ns == longest


def test_a_limit_of_slices():
    with GcRecorder(max_slices=2) as recorder:
        for _ in range(5):
            gc.collect(0)
    summary = recorder.summary()
    assert (len(summary.slices), summary.dropped_slices, summary.generations[0].count) == (2, 3, 5)


def test_other_callbacks_stay_and_are_not_counted_as_collecting():
    def slow(phase, info):
        end = now_ns() + 20_000_000
        while now_ns() < end:
            pass

    gc.callbacks.append(slow)
    before = list(gc.callbacks)
    try:
        with GcRecorder() as recorder:
            gc.collect(0)
        assert gc.callbacks == before
    finally:
        gc.callbacks.remove(slow)
    (item,) = recorder.summary().slices
    assert item.end_ns - item.start_ns < 20_000_000


def test_none_outside_the_block():
    with GcRecorder() as recorder:
        pass
    gc.collect()
    assert recorder.summary().slices == ()
    assert [step.count for step in recorder.summary().steps] == [0]


def test_the_summary_is_there_at_the_end():
    with GcRecorder() as recorder, pytest.raises(RuntimeError, match="stopped"):
        recorder.summary()
