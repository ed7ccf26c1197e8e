"""`torchdiag profile` as a user runs it: options, forms, exit codes; and, where torch is, targets for real."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import runs

ROOT = Path(__file__).parents[2]
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

# Runs the command with a run that is not made: the folder gets traces written by hand and the result `RESULT` names.
WITHOUT_RUNNING = """
import sys
sys.path.insert(0, {tests!r})
import msgspec, runs
from torchdiag.capture import parent, targets
from torchdiag.history.run_result import Failure
from torchdiag.errors import TorchdiagError
def run(options, folder, *, on_event):
    on_event("timed: 5 steps")
    print(repr(options), file=sys.stderr)
    {body}
    return runs.run_result.read(runs.folder(folder, options=options, **changes))
parent.run = run
targets.check = lambda options: None
from torchdiag.cli.main import main
sys.argv[:] = ["torchdiag", "profile", *sys.argv[1:]]
main()
"""


def command(*arguments, cwd, code=None, timeout=300):
    environment = {**os.environ, "COLUMNS": "100"}
    start = [sys.executable, "-c", code] if code else [sys.executable, "-m", "torchdiag", "profile"]
    done = subprocess.run(
        [*start, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env=environment, check=False,
        timeout=timeout,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def pretended(*arguments, cwd, body="changes = {}"):
    return command(*arguments, cwd=cwd, code=WITHOUT_RUNNING.format(tests=str(ROOT / "tests"), body=body))


def test_the_page(tmp_path):
    code, text, errors = pretended("resnet18", "--out", "run", cwd=tmp_path)
    assert code == 0
    assert text.startswith("resnet18, training, batch 2")
    assert "the main thread spent 60 % of 2 steps (200 µs) in Python" in " ".join(text.split())
    assert "KeyError at train.py:12 step, handled at line 14" in text
    assert text.splitlines()[-1] == "See it in Perfetto: torchdiag open run"
    assert "timed: 5 steps" not in errors  # no terminal, no progress
    document = json.loads((tmp_path / "run" / "result.json").read_text())
    assert document["breakdown"]["host"]["host_ns"]["python"] == 120_000


def test_json_is_the_result_and_nothing_else(tmp_path):
    code, text, _ = pretended("resnet18", "--out", "run", "--json", cwd=tmp_path)
    assert code == 0
    assert json.loads(text) == json.loads((tmp_path / "run" / "result.json").read_text())


def test_options_arrive(tmp_path):
    wanted = (
        "hf_T5 --device cuda:1 --mode eval --batch-size 8 --dtype amp --compile --channels-last --size tiny --steps 7 "
        "--warmup 2 --seed 3 --no-stack --memory --timeout 60 --max-trace-mb 9"
    )
    _, _, errors = pretended(*wanted.split(), cwd=tmp_path)
    for told in (
        "target='hf_T5', target_kind='model'",
        "device='cuda:1', mode='eval', batch_size=8, dtype='amp', compile='default', channels_last=True, size='tiny'",
        "steps=7, warmup=2, skip=None",
        "seed=3, stack=False, memory=True",
        "timeout_s=60.0",
        "max_trace_mb=9",
    ):
        assert told in errors
    assert (tmp_path / "torchdiag-runs").is_dir()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--compile resnet18", "target='resnet18', target_kind='model'"),
        ("--compile reduce-overhead resnet18", "compile='reduce-overhead'"),
        ("resnet18 --compile=max-autotune", "compile='max-autotune'"),
        ("train.py --skip 2 -- --compile --epochs 1", "script_args=('--compile', '--epochs', '1')"),
        ("-m pkg.train --finish -- x --y", "target='pkg.train', target_kind='module', script_args=('x', '--y')"),
        ("pkg.module:step --batch-size tune", None),
        ("pkg.module:step", "target_kind='function'"),
        ("resnet18 --batch-size tune", "batch_size='tune'"),
        ("train.py --seconds 0.5", "seconds=0.5"),
    ],
)
def test_targets_and_their_arguments(tmp_path, arguments, told):
    code, _, errors = pretended("--out", "run", *arguments.split(), cwd=tmp_path)
    if told is None:
        assert code == 2
    else:
        assert told in errors


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("", "name what to profile"),
        ("resnet18 extra", "takes no arguments, but extra followed"),
        ("resnet18 --batch-size 0", "a number from 1 up, or tune"),
        ("resnet18 --batch-size many", "many"),
        ("resnet18 --skip 3", "--skip has no effect on a model; --warmup is what a model has"),
        ("train.py --mode eval --device cpu", "--mode and --device have no effect on a script"),
        ("train.py --warmup 3", "--skip leaves out steps of one"),
        ("pkg.mod:f --dtype bf16", "--dtype bf16 has no effect on a function"),
    ],
)
def test_what_cannot_be_meant_is_told_before_anything_runs(tmp_path, arguments, told):
    code, text, errors = pretended(*arguments.split(), cwd=tmp_path)
    assert (code, text) == (2, "")
    assert errors.startswith("torchdiag: ")
    assert told in errors
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path):
    runs.folder(tmp_path / "run")
    code, _, errors = pretended("resnet18", "--out", "run", cwd=tmp_path)
    assert code == 2
    assert "holds a run already" in errors


def test_a_failed_target_shows_what_was_measured_and_ends_with_2(tmp_path):
    body = (
        "changes = dict(status='partial', detail=False, "
        "failure=Failure(kind='exit', message='It exited with code 3.', output_tail='boom'))"
    )
    code, text, errors = pretended("train.py", "--out", "run", cwd=tmp_path, body=body)
    assert code == 2
    assert "step" in text and "the main thread spent" in " ".join(text.split())
    assert "torchdiag: It exited with code 3.\n\n  | boom\n\nAll of its output: run/output.log" in errors
    code, text, _ = pretended("train.py", "--out", "run2", "--json", cwd=tmp_path, body=body)
    assert (code, json.loads(text)["failure"]["kind"]) == (2, "exit")


def test_an_interrupted_run_shows_what_was_measured_and_ends_with_130(tmp_path):
    body = "changes = dict(status='partial', failure=Failure(kind='interrupted', message='Interrupted.'))"
    code, text, errors = pretended("resnet18", "--out", "run", cwd=tmp_path, body=body)
    assert code == 130
    assert "the main thread spent" in " ".join(text.split())
    assert "interrupted; what was measured" in errors


def test_a_run_that_recorded_nothing_has_its_page(tmp_path):
    body = (
        "changes = dict(light=False, detail=False, status='failed', failure=Failure(kind='killed', message='Killed.'))"
    )
    code, text, errors = pretended("resnet18", "--out", "run", cwd=tmp_path, body=body)
    assert code == 2
    assert "resnet18, training" in text
    assert "Killed." in errors


def test_a_mistake_found_by_the_run_leaves_no_folder(tmp_path):
    code, text, errors = pretended(
        "resnet18", "--out", "run", cwd=tmp_path, body="raise TorchdiagError('There is no device.')"
    )
    assert (code, text) == (2, "")
    assert "torchdiag: There is no device.\n" in errors
    assert not (tmp_path / "run").exists()


def test_the_models_are_listed_without_torch(tmp_path):
    code = "import sys\nfrom torchdiag.cli.main import app\ntry: app(['profile', '--list'])\nexcept SystemExit: pass\n"
    code += "print('torch' in sys.modules)"
    _, text, _ = command(cwd=tmp_path, code=code)
    assert text.endswith("False\n")
    assert all(name in text for name in ("yolov3", "resnet50", "hf_GPT2", "soft_actor_critic"))


def test_help_starts_quickly_and_lightly(tmp_path):
    code = (
        "import sys\nfrom torchdiag.cli.main import app\ntry: app(['profile', '--help'])\nexcept SystemExit: pass\n"
        "print({'numpy', 'torch', 'rich', 'msgspec'} & set(sys.modules), file=sys.stderr)"
    )
    started = time.monotonic()
    _, text, errors = command(cwd=tmp_path, code=code)
    assert time.monotonic() - started < 5
    assert errors == "set()\n"
    assert "--batch-size" in text


TARGETS = """
import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def look_up(table):
    try:
        return table["missing"]
    except KeyError:
        return None

def step():
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    look_up({}); look_up({})
    optimizer.step()

if __name__ == "__main__":
    import sys
    print("epochs", sys.argv[1:])
    for number in range(200):
        if "--fail" in sys.argv and number == 30:
            raise ValueError("no more data")
        step()
"""


@needs_torch
def test_a_function_for_real(tmp_path):
    (tmp_path / "work.py").write_text(TARGETS)
    code, text, errors = command(
        "work:step", "--steps", "3", "--warmup", "1", "--out", "run", "--device", "cpu", cwd=tmp_path
    )
    assert code == 0, errors
    assert "KeyError at work.py:8 look_up, handled at line 9" in text
    end = text.splitlines()[-12:]  # what to do comes last, before how to look at it
    assert any(line.startswith("No device took part: the step is CPU work.") for line in end)
    assert end[-1] == "See it in Perfetto: torchdiag open run"
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["status"] == "complete"
    assert result["recorder"]["exceptions_per_step"] == [2, 2, 2]
    assert sum(result["breakdown"]["host"]["host_ns"].values()) == (
        result["breakdown"]["host"]["window"]["end_ns"] - result["breakdown"]["host"]["window"]["start_ns"]
    )
    assert any("work.py" in place["label"] for place in result["breakdown"]["host"]["places"])


@needs_torch
def test_a_script_that_fails_for_real(tmp_path):
    (tmp_path / "work.py").write_text(TARGETS)
    arguments = ["work.py", "--skip", "1", "--steps", "20", "--out", "run", "--json", "--", "--fail"]
    code, text, errors = command(*arguments, cwd=tmp_path)
    assert code == 2
    result = json.loads(text)
    assert (result["status"], result["failure"]["kind"]) == ("partial", "exception")
    assert result["steps_found_by"] == "optimizer"
    assert "ValueError: no more data" in errors
    assert "epochs ['--fail']" in (tmp_path / "run" / "output.log").read_text()
