"""`torchdiag doctor`: what it finds on machines that are made up, and that it says so in both forms."""

import json
import os
import subprocess
import sys

import pytest

from torchdiag.capture import doctor, gpu_events
from torchdiag.capture.gpu_events import Machine
from torchdiag.capture.torch_probe import TorchFacts

GOOD = {"version": "2.14.1", "operators": 8}
CUDA = {**GOOD, "cuda": "13.0"}
GPU = {**CUDA, "kind": "cuda", "devices": ("NVIDIA H200",), "launches": 8}


def machine(tmp_path, *, params=None, capabilities=0, version="Linux", processes=(), devices=(), files=()):
    """A machine of files: /proc with these contents, these names in /dev, these files at its root."""
    found = Machine(tmp_path / "proc", tmp_path / "dev", tmp_path)
    (found.proc / "driver/nvidia").mkdir(parents=True)
    (found.proc / "self").mkdir()
    found.dev.mkdir()
    (found.proc / "version").write_text(version)
    (found.proc / "self/status").write_text(f"Name:\tpython\nCapEff:\t{capabilities:016x}\n")
    if params is not None:
        (found.proc / "driver/nvidia/params").write_text(params)
        (found.proc / "driver/nvidia/version").write_text("NVRM 580")
    for number, name in enumerate(processes):
        (found.proc / str(100 + number)).mkdir()
        (found.proc / str(100 + number) / "comm").write_text(f"{name}\n")
    for name in devices:
        (found.dev / name).touch()
    for name in files:
        (tmp_path / name).touch()
    return found


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in [*gpu_events._RIVAL_VARIABLES, "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"]:
        monkeypatch.delenv(name, raising=False)


def whats(found):
    return [obstacle.what for obstacle in gpu_events.obstacles(found)]


ADMIN_ONLY = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n"


def test_counters_for_administrators_are_in_the_way_of_others(tmp_path):
    (found,) = gpu_events.obstacles(machine(tmp_path, params=ADMIN_ONLY))
    assert "RmProfilingAdminOnly: 1" in found.what
    assert "NVreg_RestrictProfilingToAdminUsers=0" in found.fix
    assert "root" in found.fix


def test_in_a_container_the_capability_is_what_helps(tmp_path):
    (found,) = gpu_events.obstacles(machine(tmp_path, params=ADMIN_ONLY, files=[".dockerenv"]))
    assert "--cap-add=SYS_ADMIN" in found.fix


@pytest.mark.parametrize(
    ("params", "capabilities"), [(ADMIN_ONLY.replace(": 1", ": 0"), 0), (ADMIN_ONLY, 1 << 21), (None, 0)]
)
def test_nothing_is_in_the_way_of_those_who_may(tmp_path, params, capabilities):
    assert whats(machine(tmp_path, params=params, capabilities=capabilities)) == []


def test_other_profilers_are_named(tmp_path, monkeypatch):
    found = machine(tmp_path, processes=["bash", "nsys", "dcgm-exporter"])
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/opt/nsys.so")
    assert whats(found) == ["another profiler may hold the GPU's counters: CUDA_INJECTION64_PATH, dcgm-exporter, nsys"]


def test_wsl_is_told(tmp_path):
    (what,) = whats(machine(tmp_path, version="Linux version 5.15 (Microsoft@Microsoft.com)"))
    assert "WSL" in what


@pytest.mark.parametrize(
    ("facts", "make", "told", "fix"),
    [
        (GOOD, {}, "", ""),
        (GOOD, {"params": "", "devices": ["nvidia0"]}, "built without CUDA", "CUDA build"),
        (CUDA, {"params": ""}, "/dev/nvidia0 is not here", "--gpus all"),
        ({**CUDA, "trouble": "driver too old"}, {"params": "", "devices": ["nvidia0"]}, "too old", "update"),
        (GOOD, {"devices": ["kfd"]}, "built without ROCm", "ROCm build"),
    ],
)
def test_why_a_gpu_is_not_seen(tmp_path, facts, make, told, fix):
    reason, helps = gpu_events.why_no_device(TorchFacts(**facts), machine(tmp_path, **make))
    assert told in reason and fix in helps
    assert bool(reason) == bool(told)


def test_a_hidden_gpu_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    reason, fix = gpu_events.why_no_device(TorchFacts(**CUDA), machine(tmp_path, params="", devices=["nvidia0"]))
    assert "CUDA_VISIBLE_DEVICES=-1 hides it" in reason
    assert fix == "unset CUDA_VISIBLE_DEVICES"


def checked(monkeypatch, facts, trouble=""):
    monkeypatch.setattr(doctor, "torch_facts", lambda: (None if facts is None else TorchFacts(**facts), trouble))
    return {check.name: check for check in doctor.checks()}


def test_without_torch_nothing_can_be_profiled(monkeypatch):
    found = checked(monkeypatch, None, "not installed")
    assert (found["torch"].state, found["torch"].fix) == ("broken", "pip install torch")
    assert "device" not in found


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (GOOD, "ok"),
        ({**GOOD, "version": "2.3.1+cpu"}, "broken"),
        ({**GOOD, "version": "2.10.0a0"}, "ok"),
        ({**GOOD, "operators": 0}, "broken"),
        ({**GOOD, "trace_trouble": "RuntimeError: no"}, "broken"),
    ],
)
def test_torch_has_to_be_young_enough_and_to_record(monkeypatch, facts, state):
    assert checked(monkeypatch, facts)["torch"].state == state


def test_gpu_events_that_come_through(monkeypatch):
    found = checked(monkeypatch, {**GPU, "kernels": 8})
    assert found["device"].found.startswith("cuda:0 NVIDIA H200")
    assert found["GPU events"].state == "ok"
    assert "GPU events" not in checked(monkeypatch, GOOD)


def test_gpu_events_that_do_not_are_told_with_what_is_in_the_way(monkeypatch, tmp_path):
    obstacles = list(gpu_events.obstacles(machine(tmp_path, params=ADMIN_ONLY)))
    monkeypatch.setattr(gpu_events, "obstacles", lambda: iter(obstacles))
    first, second = doctor.gpu_event_checks(TorchFacts(**GPU, kernels=0))
    assert (first.state, second.state) == ("missing", "missing")
    assert "8 kernels of a test were launched, none was recorded" in first.found
    assert "modprobe" in second.fix
    monkeypatch.setattr(gpu_events, "obstacles", lambda: iter(()))
    (only,) = doctor.gpu_event_checks(TorchFacts(**GPU, kernels=0))
    assert "update the driver" in only.fix


RUN = """
import sys
from torchdiag.capture import doctor
from torchdiag.capture.torch_probe import TorchFacts
doctor.torch_facts = lambda: {answer}
from torchdiag.cli.main import main
sys.argv[:] = ["torchdiag", "doctor", *sys.argv[1:]]
main()
"""


def run(answer, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(answer=answer), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "70"},
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("answer", "code", "verdict"),
    [
        ("(TorchFacts(version='2.14.1', operators=8), '')", 0, ("All is in order.", "can be used here")),
        ("(None, 'not installed')", 2, ("Nothing can be profiled here until this is mended: torch.",) * 2),
    ],
)
def test_both_forms_and_the_exit_code(answer, code, verdict):
    ended, text, errors = run(answer)
    assert (ended, errors) == (code, "")
    assert any(words in text for words in verdict)
    assert all(len(line) <= 70 for line in text.splitlines())
    ended, text, errors = run(answer, "--json")
    document = json.loads(text)
    assert (ended, errors, document["schema"], document["usable"]) == (code, "", 1, not code)
    assert {"name", "state", "found", "fix"} == set(document["checks"][0])


def test_a_torch_that_crashes_is_an_answer(monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("import os; os.abort()")
    monkeypatch.setattr(doctor, "python_command", lambda *_: [sys.executable, "-c", "import os; os.abort()"])
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda _: object())
    facts, trouble = doctor.torch_facts()
    assert facts is None
    assert "signal 6" in trouble


def test_torch_is_asked_for_real():
    pytest.importorskip("torch")
    facts, trouble = doctor.torch_facts()
    assert trouble == ""
    assert facts is not None
    assert facts.operators > 0
    assert (facts.kernels is None) == (not facts.devices)
