"""Whole runs: a model, a function and scripts in child processes, and what is in their folders afterwards."""

import gzip
import importlib.util
import json
import sys
import textwrap
from pathlib import Path

import pytest

from torchdiag.capture import parent, throw_probe
from torchdiag.errors import TorchdiagError
from torchdiag.history.profile_options import ProfileOptions
from torchdiag.history.run_result import read

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

ALL = ["warm-up", "timed", "light", "detailed", "exceptions"]
FEW = {"steps": 4, "light_steps": 3, "detailed_steps": 1}


def run(folder, **more):
    said = []
    result = parent.run(ProfileOptions(**{**FEW, **more}), folder, on_event=said.append)
    assert read(folder) == result
    assert (result.status, result.failure) == ("complete", None)
    assert [one.name for one in result.passes] == ALL
    assert [text.split(":")[0] for text in said] == ALL
    return result


def events(folder, name="trace.json.gz"):
    return json.loads(gzip.decompress((folder / name).read_bytes()))["traceEvents"]


def marks(found):
    return [
        (event["ts"], event["ts"] + event["dur"])
        for event in found
        if event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")
    ]


def test_a_model_on_the_cpu(tmp_path):
    result = run(tmp_path / "out", target="soft_actor_critic", target_kind="model", device="cpu", warmup=1, memory=True)
    assert (result.steps_found_by, result.size, result.batch_size) == ("model", "tiny", 32)
    assert [len(one.step_ns) for one in result.passes] == [1, 4, 3, 1, 3]
    timed = result.find("timed")
    # Before the recordings, which came one after the other.
    assert timed.started_ns < result.find("light").started_ns < result.find("detailed").started_ns
    assert result.parameters > 0
    assert result.memory.peak_rss_bytes > 50 << 20
    assert result.samples_per_s == pytest.approx(32e9 / timed.median_ns)
    environment = result.environment
    assert environment.torch.startswith("2.")
    assert environment.device == "cpu"
    assert environment.threads > 0
    assert environment.cpu
    assert environment.matmul_tf32 is False
    assert environment.gpus == ()
    light, detail = events(tmp_path / "out"), events(tmp_path / "out", "detail.json.gz")
    assert len(marks(light)) == 3
    assert len(marks(detail)) == 1
    assert not any(event.get("cat") == "python_function" for event in light)
    assert any(event.get("cat") == "python_function" for event in detail)
    assert any(event.get("name") == "[memory]" for event in detail)
    recorder = result.recorder
    assert recorder.steps == 3
    assert recorder.exception_cost_ns > 0
    assert recorder.throws_per_step == ((0, 0, 0) if throw_probe.available().loadable else ())
    assert len(recorder.collections_per_step) == len(recorder.warnings_per_step) == 3
    # The optimizers of torch look into the environment, and find nothing, in each step; the model raises nothing.
    assert all("torchdiag" not in place.raised_at for place in recorder.exceptions)


SCRIPT = """
import os, sys, time
assert "torch" not in sys.modules
started = []
import torch
from torch.autograd import profiler as legacy
from torch.utils.data import DataLoader, TensorDataset

for name in ("_prepare_profiler", "_enable_profiler"):
    def spying(*arguments, original=getattr(legacy, name), **more):
        started.append(time.time_ns())
        return original(*arguments, **more)
    setattr(legacy, name, spying)

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.ones(400, 4)), batch_size=2, num_workers=2)


class Missing(Exception):
    pass


def find(key):
    raise Missing(key)


def main():
    for batch, in loader:
        for _ in range(5):
            try:
                find("nothing")
            except Missing:
                pass
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        started and open("first", "x").write(str(started[0])) if not os.path.exists("first") else None


if __name__ == "__main__":
    print("arguments", sys.argv[1:])
    main()
    print("ran to the end")
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """A training script with loader workers that catches five exceptions in each step, run to its end."""
    folder = tmp_path_factory.mktemp("script")
    path = folder / "train.py"
    path.write_text(
        SCRIPT.replace('open("first"', f"open({str(folder / 'first')!r}").replace(
            'exists("first")', f"exists({str(folder / 'first')!r})"
        )
    )
    arguments = ("--epochs", "1")
    return folder, run(
        folder / "out", target=str(path), target_kind="script", script_args=arguments, skip=3, finish=True
    )


def test_a_script_is_stepped_by_its_optimizer(script):
    folder, result = script
    assert result.steps_found_by == "optimizer"
    assert [len(one.step_ns) for one in result.passes] == [3, 4, 3, 1, 3]
    output = (folder / "out" / "output.log").read_text()
    assert "arguments ['--epochs', '1']" in output
    assert output.rstrip().endswith("ran to the end")


def test_no_profiler_starts_before_the_timed_steps_are_over(script):
    folder, result = script
    timed = result.find("timed")
    assert int((folder / "first").read_text()) > timed.started_ns + sum(timed.step_ns)


def test_exceptions_are_counted_by_step_with_their_lines(script):
    _, result = script
    recorder = result.recorder
    (mine,) = [place for place in recorder.exceptions if place.type.endswith("Missing")]
    assert mine.count == 15
    lines = SCRIPT.splitlines()
    raised = lines.index("    raise Missing(key)") + 1
    handled = lines.index("            except Missing:") + 1
    assert mine.raised_at.endswith(f"train.py:{raised}:find")
    assert mine.handled_at.endswith(f"train.py:{handled}:main")
    assert mine.outcome == "handled"
    assert all(count >= 5 for count in recorder.exceptions_per_step)
    assert recorder.mechanism == ("sys.monitoring" if sys.version_info >= (3, 12) else "sys.settrace")


def test_the_trace_shows_them_under_the_steps_they_happened_in(script):
    folder, _ = script
    found = events(folder / "out")
    slices = [event for event in found if event.get("cat") == "torchdiag" and event.get("ph") == "X"]
    mine = [(event["ts"], event["ts"] + event["dur"]) for event in slices if event["name"].endswith("Missing")]
    steps = [
        (event["ts"], event["ts"] + event["dur"]) for event in slices if event["name"].startswith("exceptions pass")
    ]
    if sys.version_info >= (3, 12):
        steps = marks(found)
    assert len(steps) == 3
    # Kineto's clock is a line through two pairs, each good to some microseconds.
    inside = [sum(start - 50 <= at and end <= stop + 50 for at, end in mine) for start, stop in steps]
    assert inside == [5, 5, 5]
    threads = {event["tid"]: event["args"]["name"] for event in found if event.get("name") == "thread_name"}
    assert all("thread" in threads[event["tid"]] or "steps" in threads[event["tid"]] for event in slices)


def test_a_step_holds_its_loading_and_its_optimizers_mark_whole(script):
    folder, _ = script
    found = events(folder / "out")
    for kind in ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "Optimizer.step#SGD.step"):
        spans = [(event["ts"], event["ts"] + event["dur"]) for event in found if event.get("name") == kind]
        assert len(spans) >= 3
        for start, stop in marks(found):
            assert sum(start <= at and end <= stop for at, end in spans) == 1


def test_a_function_of_the_current_folder_and_a_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "some_steps"
    package.mkdir()
    (package / "__init__.py").write_text("")
    body = "import torch\nweight = torch.ones(8, 8)\ndef step(): return weight.matmul(weight)\n"
    (package / "steps.py").write_text(body)
    result = run(tmp_path / "a", target="some_steps.steps:step", target_kind="function", warmup=1, seed=3)
    assert (result.steps_found_by, result.batch_size, result.samples_per_s) == ("function", None, None)
    assert len(marks(events(tmp_path / "a"))) == 3
    (package / "__main__.py").write_text(
        textwrap.dedent(
            """
            from torchdiag.capture.steps import step as mark
            from .steps import step
            while True:
                step()
                mark()
            """
        )
    )
    result = run(tmp_path / "b", target="some_steps", target_kind="module", skip=1, exceptions=True)
    assert result.steps_found_by == "step()"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"target": "resnet50_quantized_qat", "device": "cuda:7"}, "cuda"),
        ({"target": "soft_actor_critic", "device": "toaster"}, "no kind of device called 'toaster'"),
    ],
)
def test_a_device_that_is_not_there_is_a_mistake(tmp_path, more, words):
    with pytest.raises(TorchdiagError, match=words):
        parent.run(ProfileOptions(target_kind="model", **more), tmp_path, on_event=print)


def test_a_batch_size_is_tuned_for_models_only(tmp_path):
    Path(tmp_path / "script.py").write_text("")
    options = ProfileOptions(target=str(tmp_path / "script.py"), target_kind="script", batch_size="tune")
    with pytest.raises(TorchdiagError, match="is for suite models"):
        parent.run(options, tmp_path / "out", on_event=print)
