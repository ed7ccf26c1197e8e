"""Who runs at the same time, and how long the rest will take."""

import os
import subprocess
import sys

import pytest
from suite_outcomes import case, outcome

from torchdiag.capture.accelerators import Accelerators
from torchdiag.suite.memory_limit import MemoryWatch, descendants, resident_bytes
from torchdiag.suite.progress import Remaining
from torchdiag.suite.slots import Slots, default_jobs

TWO = Accelerators("cuda", 2)


def test_a_gpu_has_one_child_and_sees_no_other(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    slots = Slots(3, TWO)
    first, second = slots.take(case()), slots.take(case("dlrm"))
    assert [slot.gpu for slot in (first, second)] == [0, 1]
    assert [dict(slot.variables) for slot in (first, second)] == [
        {"CUDA_VISIBLE_DEVICES": "4"},
        {"CUDA_VISIBLE_DEVICES": "7"},
    ]
    assert slots.take(case("hf_Bert")) is None
    assert slots.take(case("hf_Bert", device="cpu")).gpu is None
    slots.give_back(first)
    assert slots.take(case("hf_Bert")).gpu == 0


def test_a_gpu_that_is_named_is_waited_for():
    slots = Slots(2, TWO)
    taken = slots.take(case(device="cuda:1"))
    assert (taken.gpu, taken.device) == (1, "cuda:0")
    assert slots.take(case(device="cuda:1")) is None
    assert slots.take(case(device="cuda")).gpu == 0


def test_jobs_bound_everything():
    slots = Slots(1, Accelerators("cpu", 1))
    first = slots.take(case(device="cpu"))
    assert slots.take(case(device="cpu")) is None
    slots.give_back(first)
    assert slots.take(case(device="cpu")) is not None


@pytest.mark.parametrize(
    ("device", "accelerators", "jobs"),
    [("cuda", TWO, 2), ("cpu", TWO, 1), ("cpu", Accelerators("cpu", 1), 1), ("mps", Accelerators("mps", 1), 1)],
)
def test_jobs_unless_told(device, accelerators, jobs):
    assert default_jobs([case(device=device)], accelerators) == jobs


def test_a_gpu_that_is_not_there_is_left_to_the_run_to_tell():
    slot = Slots(1, TWO).take(case(device="cuda:7"))
    assert (slot.gpu, slot.device) == (None, "cuda:7")


def test_the_rest_takes_as_long_as_those_before():
    remaining = Remaining(5, jobs=2)
    assert remaining.seconds(0) is None
    remaining.started(case(), 0)
    remaining.ended(outcome(wall_s=10.0))
    # Skipped ones say nothing of the others.
    remaining.ended(outcome(case("dlrm"), status="skipped", wall_s=0.0))
    assert remaining.seconds(10) == 3 * 10 / 2
    remaining.started(case("hf_Bert"), 10)
    assert remaining.seconds(14) == (3 * 10 - 4) / 2
    # One that takes longer than the others does not make the rest shorter.
    assert remaining.seconds(100) == (3 * 10 - 10) / 2


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_memory_counts_of_children_and_theirs():
    inner = "import sys; kept = bytearray(80 << 20); print('ready', flush=True); sys.stdin.read()"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    with MemoryWatch(60 << 20) as watch:
        process = subprocess.Popen([sys.executable, "-c", outer], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.wait(30) == -9
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.stdout.close()
    assert watch.exceeded_bytes is not None and watch.exceeded_bytes > 60 << 20
    assert process.pid not in descendants(os.getpid())
    assert resident_bytes(os.getpid()) > 0
    assert resident_bytes(process.pid) == 0
