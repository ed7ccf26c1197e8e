"""What counts as a step of a program that was not written for this; programs here are loops with tiny optimizers."""

import importlib.util
import os
import threading

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch.utils.data import DataLoader, TensorDataset

from torchdiag.capture.steps import StepFinder, step


class Recorder:
    """A finder with a log: its source when one is found, and `|` for each border."""

    def __init__(self, seconds=None):
        self.log = []
        self.measuring = False
        self.finder = StepFinder(
            lambda: self.log.append("|"),
            locked=lambda: self.measuring,
            on_source=self.log.append,
            seconds=seconds,
        )


@pytest.fixture
def recorder():
    recorder = Recorder()
    recorder.finder.install()
    yield recorder
    recorder.finder.remove()


def optimizer():
    """An optimizer of a class that torch has not seen yet, as in a program that has just begun."""

    class Descent(torch.optim.Optimizer):
        def step(self, closure=None):
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.data.add_(parameter.grad, alpha=-group["lr"])

    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    return Descent([parameter], {"lr": 0.1})


def test_each_optimizer_step_ends_a_step_and_the_first_begins_one(recorder):
    one = optimizer()
    for _ in range(3):
        one.step()
        recorder.log.append("work")
    assert recorder.log == ["optimizer", "work", "|", "work", "|", "work"]


def test_a_border_lies_outside_the_optimizers_own_mark_in_the_trace(recorder):
    one = optimizer()
    # Schedulers replace the optimizer's `step` once more.
    torch.optim.lr_scheduler.StepLR(one, 1)
    one.step()
    with torch.profiler.profile() as profiler:
        recorder.finder._border = lambda: torch.ones(1).mul_(1)
        one.step()
    events = profiler.events()
    (mark,) = [event for event in events if event.name == "Optimizer.step#Descent.step"]
    (border,) = [event for event in events if event.name == "aten::mul_"]
    assert border.time_range.start >= mark.time_range.end


def test_generator_and_discriminator_make_one_step(recorder):
    first, second = optimizer(), optimizer()
    for _ in range(4):
        first.step()
        second.step()
        recorder.log.append("-")
    # While the second was unknown the first one's steps counted.
    assert recorder.log[:2] == ["optimizer", "|"]
    assert recorder.log[2:] == ["-", "|", "-", "|", "-", "|", "-"]


def test_an_optimizer_that_shows_up_while_steps_are_measured_changes_nothing(recorder):
    first, second = optimizer(), optimizer()
    first.step()
    first.step()
    recorder.measuring = True
    for _ in range(3):
        first.step()
        second.step()
    assert recorder.log == ["optimizer", *"||||"]


def test_another_optimizer_takes_over_when_the_first_is_used_no_more(recorder):
    first, second = optimizer(), optimizer()
    first.step()
    first.step()
    recorder.measuring = True
    for _ in range(30):
        second.step()
    assert recorder.log.count("|") > 15


def test_a_step_reaches_from_one_fetch_to_the_next_over_epochs(recorder):
    loader = DataLoader(TensorDataset(torch.arange(3)), batch_size=1)
    for _ in range(2):
        for (batch,) in loader:
            recorder.log.append(int(batch))
        recorder.log.append("epoch")
    assert recorder.log == ["dataloader", 0, "|", 1, "|", 2, "|", "epoch", 0, "|", 1, "|", 2, "|", "epoch"]


def test_a_second_loader_inside_the_loop_is_no_step(recorder):
    outer = DataLoader(TensorDataset(torch.arange(3)), batch_size=1)
    inner = DataLoader(TensorDataset(torch.arange(2)), batch_size=1)
    for _ in outer:
        for _ in inner:
            recorder.log.append("in")
    assert recorder.log == ["dataloader", "in", "in", "|", "in", "in", "|", "in", "in", "|"]


def test_an_optimizer_goes_before_a_loader_that_was_first(recorder):
    loader = DataLoader(TensorDataset(torch.arange(3)), batch_size=1)
    for _ in loader:
        pass
    assert recorder.log == ["dataloader", *"|||"]
    one = optimizer()
    for _ in loader:
        one.step()
        recorder.log.append("-")
    assert recorder.log[4:] == ["optimizer", "-", "|", "-", "|", "-"]


def test_looking_at_the_validation_data_is_no_training_step(recorder):
    one = optimizer()
    for _ in DataLoader(TensorDataset(torch.arange(5)), batch_size=1):
        pass
    assert recorder.log == []
    one.step()
    assert recorder.log == ["optimizer"]


def test_marks_count_where_nothing_else_is_found(recorder):
    step()
    step()
    assert recorder.log == ["step()", "|"]
    one = optimizer()
    one.step()
    step()
    one.step()
    assert recorder.log == ["step()", "|", "optimizer", "|"]


def test_marks_do_nothing_where_nothing_is_measured():
    step()


def test_stretches_of_time_are_the_last_resort():
    recorder = Recorder(seconds=0.02)
    recorder.finder.install()
    try:
        optimizer().step()
        end = threading.Event()
        for _ in range(500):
            end.wait(0.01)
            if recorder.log.count("|") >= 2:
                break
    finally:
        recorder.finder.remove()
    assert recorder.log[:3] == ["time", "|", "|"]


def test_other_threads_and_forked_children_make_no_steps(recorder):
    step()
    thread = threading.Thread(target=step)
    thread.start()
    thread.join()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        step()
        os.write(write, str(len(recorder.log)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"1"
    os.close(read)
    os.close(write)
    step()
    assert recorder.log == ["step()", "|"]


def test_once_removed_nothing_remains(recorder):
    one = optimizer()
    one.step()
    recorder.finder.remove()
    before = list(recorder.log)
    one.step()
    step()
    list(DataLoader(TensorDataset(torch.arange(3)), batch_size=1))
    optimizer().step()
    assert recorder.log == before


def test_a_border_inside_a_compiled_step_is_not_compiled(recorder):
    one = optimizer()
    compiling = []
    recorder.finder._border = lambda: compiling.append(torch._C._dynamo.eval_frame.get_eval_frame_callback())

    @torch.compile(backend="eager")
    def compiled():
        one.step()

    for _ in range(3):
        compiled()
    assert compiling == [None, None]
