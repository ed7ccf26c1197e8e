"""The passes one by one, in this process, on steps that are known."""

import importlib.util
import statistics

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
import torch.utils.benchmark

from torchdiag.capture import kineto
from torchdiag.capture.hand_over import HandOver
from torchdiag.capture.passes import Passes, Stage, Timed, WarmUp
from torchdiag.capture.profiled_pass import Profiled
from torchdiag.capture.timing import steady
from torchdiag.history.profile_options import ProfileOptions
from torchdiag.history.run_result import PARTIAL, Environment, PassResult, read

CPU = torch.device("cpu")


@pytest.fixture
def stage(tmp_path, monkeypatch):
    # Other tests of this process have profiled.
    monkeypatch.setattr(kineto, "_sessions_started", 0)
    return Stage(CPU, HandOver(options(), tmp_path, Environment(python="", platform=""), None))


def options(**more):
    return ProfileOptions(target="m", target_kind="model", **more)


def through(one, stage, step=lambda: torch.ones(2).add_(1), most=1000):
    """Take a pass through as many steps as it wants; how many that were."""
    one.begin(stage)
    for taken in range(1, most + 1):
        step()
        if one.border():
            one.end(early=False)
            return taken
    one.end(early=True)
    return most


def result(stage):
    return read(stage.hand_over.folder / PARTIAL)


def test_steady_means_that_the_last_three_agree_within_a_tenth():
    assert not steady([100, 100])
    assert steady([900, 100, 105, 110])
    assert not steady([100, 100, 111])
    assert not steady([111, 105, 100])


def test_warm_up_takes_the_steps_asked_for(stage):
    assert through(WarmUp(4), stage) == 4
    (done,) = result(stage).passes
    assert (done.name, len(done.step_ns)) == ("warm-up", 4)


def test_the_timed_pass_keeps_every_sample_and_the_memory(stage):
    assert through(Timed(7), stage) == 7
    told = result(stage)
    (done,) = told.passes
    assert len(done.step_ns) == 7
    assert min(done.step_ns) > 0
    assert done.device_step_ns is None
    assert told.memory.peak_rss_bytes > 1 << 20
    assert told.status == "partial"
    assert kineto.sessions_started() == 0


def test_the_timed_pass_says_where_a_profiler_was_loaded_before(stage, tmp_path):
    through(Timed(1), stage)
    session = kineto.Session(tmp_path / "t.json", CPU, active=1)
    session.start()
    session.give_up()
    through(Timed(1), stage)
    assert ["recorded in this process before" in done.note for done in result(stage).passes] == [False, True]


def test_a_profiler_of_the_targets_own_is_noted_in_the_timed_pass(stage):
    with torch.profiler.profile():
        through(Timed(2), stage)
    assert "own profiler was running" in result(stage).passes[0].note


def test_samples_survive_a_target_that_ends_early(stage):
    through(Timed(10), stage, most=4)
    (done,) = result(stage).passes
    assert len(done.step_ns) == 4
    assert done.note == "the target ended before all steps were timed"


def test_one_step_is_tried_before_the_others_are_recorded(stage):
    # Warm-up and recorded step of both sessions.
    assert through(Profiled(options(light_steps=3), detailed=False), stage) == 2 + 4
    (done,) = result(stage).passes
    assert (done.name, done.trace, done.recorded, len(done.step_ns)) == ("light", "trace.json.gz", 3, 3)
    assert sorted(path.name for path in stage.hand_over.folder.iterdir()) == [PARTIAL, "trace.json.gz"]


def test_one_step_is_enough_where_one_was_asked_for(stage):
    assert through(Profiled(options(detailed_steps=1), detailed=True), stage) == 2
    (done,) = result(stage).passes
    assert (done.name, done.trace, done.recorded) == ("detailed", "detail.json.gz", 1)


def test_fewer_steps_are_recorded_where_they_would_not_fit(stage):
    def large():
        for _ in range(1000):
            torch.ones(2).add_(1)

    # A step has some thousand operators of a few hundred bytes each, so two steps do not fit into a megabyte.
    assert through(Profiled(options(max_trace_mb=1), detailed=False), stage, large) == 2
    (done,) = result(stage).passes
    assert done.recorded == 1
    assert "1 of 5 steps recorded" in done.note


def test_a_session_of_the_targets_own_is_waited_for(stage):
    theirs = torch.profiler.profile()
    theirs.start()
    light = Profiled(options(light_steps=1), detailed=False)
    light.begin(stage)
    assert not light.border()
    theirs.stop()
    assert not light.border()
    assert not light.border()
    assert light.border()
    light.end(early=False)
    assert result(stage).passes[0].recorded == 1


def test_a_session_of_the_targets_own_that_never_ends_is_said(stage):
    with torch.profiler.profile() as theirs:
        light = Profiled(options(), detailed=False)
        assert through(light, stage) == 51
    (done,) = result(stage).passes
    assert done.trace is None
    assert "another torch profiler was active" in done.note
    assert "aten::add_" in {event.name for event in theirs.events()}


class Scripted:
    """A pass of so many steps."""

    def __init__(self, log, name, steps):
        self.log, self.name, self.left = log, name, steps

    def begin(self, stage):
        self.log.append(f"begin {self.name}")

    def border(self):
        self.left -= 1
        return self.left == 0

    def end(self, *, early):
        self.log.append(f"{'abandon' if early else 'end'} {self.name}")


def test_passes_follow_each_other_at_step_borders(stage):
    log = []
    passes = Passes([Scripted(log, "a", 1), Scripted(log, "b", 2)], stage.hand_over, lambda: CPU)
    passes.begin()
    while not passes.done:
        log.append("step")
        passes.border()
    assert log == ["begin a", "step", "end a", "begin b", "step", "step", "end b"]
    assert passes.borders == 3


def test_the_pass_in_progress_is_handed_over_when_the_target_ends(stage):
    log = []
    passes = Passes([Scripted(log, "a", 1), Scripted(log, "b", 2)], stage.hand_over, lambda: CPU)
    passes.begin()
    passes.border()
    passes.border()
    passes.abandon()
    assert log == ["begin a", "end a", "begin b", "abandon b"]
    assert passes.done


@pytest.mark.parametrize(("samples", "median"), [((5,), 5), ((9, 1, 5), 5), ((1, 3, 9, 9), 6), ((), None)])
def test_the_median_of_samples(samples, median):
    assert PassResult(name="timed", step_ns=samples).median_ns == median
    assert PassResult(name="timed", step_ns=(7,), device_step_ns=samples or None).median_ns == (median or 7)


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_timing_agrees_with_torchs_own_benchmark(stage):
    left, right = torch.ones(160, 160), torch.ones(160, 160)

    def step():
        for _ in range(10):
            torch.mm(left, right)

    timer = torch.utils.benchmark.Timer("step()", globals={"step": step}, num_threads=1)
    ours, theirs = [], []
    # Taken in turns, so that a machine that is busy for a while is so for both.
    for _ in range(6):
        through(Timed(10), stage, step)
        ours += result(stage).passes[-1].step_ns
        theirs += [timer.timeit(1).median * 1e9 for _ in range(10)]
    our_quarter, _, our_three = statistics.quantiles(ours)
    their_quarter, _, their_three = statistics.quantiles(theirs)
    # On a quiet machine the shortest agree, on a busy one the spreads are wide and overlap.
    overlap = our_quarter <= their_three and their_quarter <= our_three
    assert overlap or min(ours) == pytest.approx(min(theirs), rel=0.3)
