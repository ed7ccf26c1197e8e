"""`torchdiag suite run` as a user meets it: targets that misbehave, interruptions, kills, and going on after them."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchdiag.suite import folder as folders
from torchdiag.suite import outcome as outcomes

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

TORCHDIAG = [sys.executable, "-m", "torchdiag", "suite"]

SCRIPTS = {
    "raises": "raise ValueError('no data')",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "hangs": "import time; print('waiting'); time.sleep(600)",
    "eats": "import time\nkept = []\nwhile True:\n    kept.append(bytearray(20 << 20)); time.sleep(0.01)",
    "binary": "import sys; sys.stdout.buffer.write(bytes(range(256)) * 50); sys.stdout.flush(); raise SystemExit(3)",
    "missing": None,
}
SUITE = """
description = "What goes wrong"
timeout_s = 4
run = [
{scripts}
  {{ model = "dcgan", modes = ["eval"], size = "tiny", steps = 2, warmup = 1, timeout_s = 200 }},
]
"""


def start(*arguments, cwd):
    return subprocess.Popen(
        [*TORCHDIAG, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "120", "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def command(*arguments, cwd):
    process = start(*arguments, cwd=cwd)
    text, errors = process.communicate(timeout=300)
    return process.returncode, text, errors


def until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(pid):
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(scope="module")
def bad_run(tmp_path_factory):
    """A suite of programs that do everything wrong, with one model at its end."""
    place = tmp_path_factory.mktemp("bad")
    lines = []
    for name, code in SCRIPTS.items():
        if code is not None:
            (place / f"{name}.py").write_text(code)
        limit = ", memory_gb = 0.3, timeout_s = 60" if name == "eats" else ""
        lines.append(f'  {{ script = "{name}.py"{limit} }},')
    (place / "bad.toml").write_text(SUITE.format(scripts="\n".join(lines)))
    result = command("run", "bad.toml", "--jobs", "2", "--out", "out", cwd=place)
    found = {one.case.subject: one for one in folders.read(place / "out").outcomes()}
    return place, result, found


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("raises", "exception", "ValueError: no data"),
        ("crashes", "killed", "SIGSEGV"),
        ("hangs", "timeout", "Not finished after 4 s"),
        ("eats", "out-of-memory", "more than the limit of 300 MB"),
        ("binary", "exit", "code 3"),
        ("missing", "mistake", "There is no script missing.py"),
    ],
)
def test_one_failure_never_stops_the_rest(bad_run, name, kind, words):
    _, _, found = bad_run
    assert found["dcgan"].status == "complete"
    assert (found[name].status, found[name].kind) == ("failed", kind)
    assert words in found[name].message


def test_the_failed_are_named_and_the_code_says_so(bad_run):
    place, (code, text, errors), found = bad_run
    assert code == 2
    assert errors.startswith("torchdiag: 6 of 7 runs failed: raises, crashes, hangs, eats, binary and 1 more")
    assert "Traceback" not in errors
    assert text.startswith("bad: 1 of 7 runs complete, 6 failed")
    # What the target printed is kept, none of it reaches the terminal raw.
    assert (place / "out" / "runs" / "binary" / "output.log").read_bytes() == bytes(range(256)) * 50
    assert text.isprintable() or all(char.isprintable() or char == "\n" for char in text)
    assert found["eats"].case.memory_bytes == 300_000_000


def test_the_table_is_parquet(bad_run):
    parquet = pytest.importorskip("pyarrow.parquet")
    place, _, _ = bad_run
    rows = {row["run"]: row for row in parquet.read_table(place / "out" / "results.parquet").to_pylist()}
    assert len(rows) == 7
    model = rows["dcgan-eval-cpu-fp32"]
    result = json.loads((place / "out" / "runs" / "dcgan-eval-cpu-fp32" / "result.json").read_text())
    timed = sorted(next(one for one in result["passes"] if one["name"] == "timed")["step_ns"])
    assert model["step_ns"] == (timed[0] + timed[1]) // 2
    assert model["batch_size"] == 4
    assert rows["hangs"]["kind"] == "timeout"


def test_a_model_has_its_figures_and_the_run_its_report(bad_run):
    place, _, found = bad_run
    figures = found["dcgan"].figures
    assert "torch.nn.functional.conv_transpose2d" in figures.functions
    assert figures.operators["aten::conv_transpose2d"] > 0
    assert figures.host.window_ns == sum(
        (
            figures.host.operator_ns,
            figures.host.runtime_ns,
            figures.host.python_ns,
            figures.host.dataloader_ns,
            figures.host.uncovered_ns,
        )
    )
    # Five steps are recorded, and generation alone does the same in each.
    assert len(figures.counters.operators) == 5
    assert len(set(figures.counters.operators)) == 1
    code, text, _ = command("report", "out", cwd=place)
    assert code == 0
    assert "Where the time went, by domain, on cpu" in text
    assert "Not measured whole" in text


WAITS = "import os, sys, time\nopen(sys.argv[1], 'w').write(str(os.getpid()))\n"
WAITS += "while not os.path.exists('go'):\n    time.sleep(0.05)\nraise SystemExit(5)\n"


@pytest.fixture
def waiting(tmp_path):
    """A suite whose second run goes on until a file `go` is there, and the command that is at it."""
    (tmp_path / "quick.py").write_text("raise SystemExit(4)")
    (tmp_path / "waits.py").write_text(WAITS)
    (tmp_path / "two.toml").write_text(
        'run = [\n  { script = "quick.py" },\n  { script = "waits.py", arguments = ["pid"] },\n]\n'
    )
    process = start("run", "two.toml", "--out", "out", cwd=tmp_path)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    yield tmp_path, process, int((tmp_path / "pid").read_text())
    process.kill()
    process.communicate()


def both(place):
    return {one.case.subject: one for one in folders.read(place / "out").outcomes()}


def test_a_killed_suite_leaves_no_process_and_goes_on_where_it_was(waiting):
    place, process, target = waiting
    first = outcomes.read(place / "out" / "runs" / "quick")
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not alive(target), 10)
    assert list(both(place)) == ["quick"]
    (place / "go").touch()
    code, text, errors = command("run", "two.toml", "--resume", "--out", "out", cwd=place)
    assert code == 2, errors
    found = both(place)
    assert found["quick"] == first
    assert "exited with code 5" in found["waits"].message
    assert "2 failed" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_done(waiting, number):
    place, process, target = waiting
    started = time.monotonic()
    process.send_signal(number)
    text, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - started < 20
    assert not alive(target)
    assert "Traceback" not in errors
    assert "two: 0 of 2 runs complete, 1 failed, 1 interrupted" in text
    assert {name: one.status for name, one in both(place).items()} == {"quick": "failed", "waits": "interrupted"}
    (place / "go").touch()
    code, _, _ = command("run", "two.toml", "--resume", "--out", "out", cwd=place)
    assert code == 2
    assert both(place)["waits"].status == "failed"


def test_another_python_takes_turns(tmp_path):
    (tmp_path / "quick.py").write_text("raise SystemExit(4)")
    (tmp_path / "two.toml").write_text('processes = 2\nrun = [ { script = "quick.py" } ]\n')
    code, text, _ = command("run", "two.toml", "--against", sys.executable, "--out", "out", cwd=tmp_path)
    assert code == 2
    assert f"With {sys.executable}:" in text
    assert "torchdiag suite compare out out/against" in text
    sides = {"own": folders.read(tmp_path / "out"), "other": folders.read(tmp_path / "out" / "against")}
    began = sorted((one.began, side) for side, folder in sides.items() for one in folder.outcomes())
    assert [side for _, side in began] in (["own", "other", "other", "own"], ["other", "own", "own", "other"])
    assert {one.kind for folder in sides.values() for one in folder.outcomes()} == {"exit"}


def test_two_do_not_run_in_one_folder(waiting):
    place, _, _ = waiting
    code, _, errors = command("run", "two.toml", "--resume", "--out", "out", cwd=place)
    assert code == 2
    assert "another torchdiag is running a suite in out" in errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "smok"], "There is no suite 'smok'. Did you mean smoke?"),
        (["run", "none.toml"], "cannot read the suite none.toml"),
        (["run", "smoke", "--only", "resnet19"], "--only resnet19 leaves nothing of the suite smoke: it has dcgan"),
        (["run", "smoke", "--resume"], "there is no run of the suite smoke in torchdiag-runs to resume"),
        (["run", "smoke", "--resume", "--size", "tiny"], "--size cannot change that"),
        (["run", "smoke", "--out", "taken"], "taken is not empty"),
        (["run", "smoke", "--device", "gpu"], '--device: "gpu" is no device: auto, cpu, cuda'),
        (["run", "smoke", "--against", "taken/file"], "--against taken/file cannot be run"),
        (["list", "--domain", "music"], "there is no domain 'music': there are vision, language"),
    ],
)
def test_mistakes_are_one_sentence_and_code_2(tmp_path, arguments, words):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    code, text, errors = command(*arguments, cwd=tmp_path)
    assert (code, text) == (2, "")
    assert errors.startswith("torchdiag: ")
    assert words in errors


def test_list_as_json_names_models_that_are_not_here_yet(tmp_path):
    code, text, _ = command("list", "--json", cwd=tmp_path)
    assert code == 0
    document = json.loads(text)
    suites = {suite["name"]: suite for suite in document["suites"]}
    assert len(suites["torchbench"]["models"]) == 84
    known = {model["name"] for model in document["models"]}
    for model in suites["torchbench"]["models"]:
        assert model["in_torchdiag"] == (model["name"] in known)
    code, text, _ = command("list", "--domain", "rl", "--json", cwd=tmp_path)
    assert "soft_actor_critic" in [model["name"] for model in json.loads(text)["models"]]
    assert {model["domain"] for model in json.loads(text)["models"]} == {"reinforcement learning"}
