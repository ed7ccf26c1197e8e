"""`with torchdiag.profile(out) as p`: the passes from inside a program, which goes on whatever happens."""

import os
import threading

import pytest

import torchdiag
from torchdiag.capture import context
from torchdiag.history import run_folder

torch = pytest.importorskip("torch")


NAMES = ["warm-up", "timed", "light", "detailed", "exceptions"]


def work():
    torch.mm(torch.ones(8, 8), torch.ones(8, 8))


def measured(out, steps=40, **options):
    with torchdiag.profile(out, warmup=1, steps=3, **options) as p:
        for _ in range(steps):
            work()
            p.step()
            if p.done:
                break
    return p


def test_all_passes_make_a_run(tmp_path):
    p = measured(tmp_path / "run")
    run = run_folder.read(tmp_path / "run")
    assert p.folder == tmp_path / "run"
    assert run.result == p.result
    assert (run.result.status, run.result.failure) == ("complete", None)
    assert [done.name for done in run.result.passes] == NAMES
    assert run.result.steps_found_by == "step()"
    assert run.result.environment.torch == torch.__version__
    assert run.trace is not None and run.detail is not None
    host = run.result.breakdown["host"]
    assert sum(host["host_ns"].values()) == host["window"]["end_ns"] - host["window"]["start_ns"]
    assert not list((tmp_path / "run").glob(".*"))
    assert not (tmp_path / "run" / "partial.json").exists()


def test_a_second_run_of_one_process_says_that_it_is_one(tmp_path):
    measured(tmp_path / "a")
    p = measured(tmp_path / "b")
    assert "had recorded in this process before" in p.result.find("timed").note
    assert p.result.status == "complete"


def test_steps_beyond_the_last_pass_do_nothing(tmp_path):
    with torchdiag.profile(tmp_path / "run", warmup=1, steps=3) as p:
        for _ in range(60):
            work()
            p.step()
        assert p.done
        assert p.result.status == "complete"
    assert len(p.result.find("timed").step_ns) == 3


def test_too_few_steps_are_told(tmp_path):
    p = measured(tmp_path / "run", steps=6)
    assert (p.result.status, p.result.failure.kind) == ("partial", "few-steps")
    assert "after 6 steps" in p.result.failure.message
    assert p.result.find("timed") is not None
    assert measured(tmp_path / "none", steps=0).result.failure.kind == "no-steps"


def test_an_exception_of_the_program_goes_through(tmp_path):
    with pytest.raises(KeyError, match="mine"), torchdiag.profile(tmp_path / "run", warmup=1, steps=3) as p:
        for number in range(40):
            work()
            p.step()
            if number == 8:
                raise KeyError("mine")
    assert p.result.failure.kind == "exception"
    assert "KeyError" in p.result.failure.traceback
    assert run_folder.read(tmp_path / "run").result.find("timed") is not None
    with torch.profiler.profile():  # nothing is left running
        work()


def test_an_interrupted_program_is_one(tmp_path):
    with pytest.raises(KeyboardInterrupt), torchdiag.profile(tmp_path / "run", warmup=1, steps=3) as p:
        p.step()
        raise KeyboardInterrupt
    assert p.result.failure.kind == "interrupted"


def test_a_folder_that_is_there_is_refused(tmp_path):
    measured(tmp_path / "run", steps=1)
    with pytest.raises(torchdiag.TorchdiagError, match="holds a run already"), torchdiag.profile(tmp_path / "run"):
        pass


def test_where_the_disk_fails_the_program_goes_on(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with torchdiag.profile(tmp_path / "run", warmup=1, steps=3) as p:
        p.step()
        monkeypatch.setattr(p._hand_over, "add_pass", full)
        with pytest.warns(RuntimeWarning, match=r"measures no more.*No space"):
            for _ in range(5):
                work()
                p.step()
    assert p.done
    assert p.result.failure.kind == "disk"


def test_other_threads_and_forked_children_do_not_count(tmp_path):
    with torchdiag.profile(tmp_path / "run", warmup=1, steps=3) as p:
        for _ in range(2):
            work()
            p.step()
        for _ in range(50):
            thread = threading.Thread(target=p.step)
            thread.start()
            thread.join()
        child = os.fork()
        if not child:
            for _ in range(50):
                p.step()
            os._exit(0)
        os.waitpid(child, 0)
        assert not p.done
    assert len(p.result.find("timed").step_ns) == 1


def test_of_several_ranks_the_first_is_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    with torchdiag.profile(tmp_path / "run") as p:
        p.step()
    assert (p.folder, p.result, p.done) == (None, None, True)
    assert not (tmp_path / "run").exists()
    monkeypatch.setenv("RANK", "0")
    assert context._rank() == 0


def test_a_profiler_of_the_program_is_left_alone(tmp_path):
    with torch.profiler.profile(), torchdiag.profile(tmp_path / "run", warmup=1, steps=3, exceptions=False) as p:
        for _ in range(150):
            work()
            p.step()
            if p.done:
                break
    assert "the target's own profiler was running" in p.result.find("timed").note
    assert "another torch profiler" in p.result.find("light").note
    assert p.result.breakdown is None


def test_step_outside_of_a_run_costs_nothing():
    assert torchdiag.step() is None
