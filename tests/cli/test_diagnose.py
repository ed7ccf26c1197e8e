"""`torchdiag diagnose`, `rules` and `what-if` as a user runs them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEP_US, STEPS = 1000, 4


def run(*arguments, cwd, columns=80):
    """The command with a pipe for standard output: (exit code, output, errors)."""
    done = subprocess.run(
        [sys.executable, "-m", "torchdiag", *map(str, arguments)],
        capture_output=True,
        env={**os.environ, "COLUMNS": str(columns)},
        cwd=cwd,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def complete(name, category, start, duration, tid=1, **arguments):
    times = {"ts": start, "dur": duration}
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, **times, "args": arguments}


def waiting_program(line="train.py(12): step"):
    """Steps of 1000 us in which the host launches a kernel of 300 us, waits for the device, and launches one of 100 us.

    The device-wide wait lasts from 100 to 420 us, the kernel from 110 to 410. Without the wait the host has 680 us of
    work in a step, which is longer than both kernels: 320 us are won.
    """
    events = []
    for number in range(STEPS):
        at = 10_000 + STEP_US * number
        events += [
            complete(f"ProfilerStep#{number}", "user_annotation", at, STEP_US),
            complete(line, "python_function", at + 10, 980),
            complete("aten::mm", "cpu_op", at + 80, 20),
            complete("cudaLaunchKernel", "cuda_runtime", at + 85, 10, correlation=number + 1),
            complete("gemm", "kernel", at + 110, 300, tid=7, correlation=number + 1, device=0, stream=7),
            complete("cudaDeviceSynchronize", "cuda_runtime", at + 100, 320),
            complete("aten::add", "cpu_op", at + 600, 20),
            complete("cudaLaunchKernel", "cuda_runtime", at + 605, 10, correlation=100 + number),
            complete("add", "kernel", at + 620, 100, tid=7, correlation=100 + number, device=0, stream=7),
        ]
    return events


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": waiting_program()}))
    return path


def test_the_page_begins_with_what_to_do(trace, tmp_path):
    code, out, errors = run("diagnose", trace, cwd=tmp_path)
    assert (code, errors) == (0, "")
    text = " ".join(out.split())
    assert text.startswith("Bound by the host")
    assert "First: Delete the synchronisation at train.py:12 step" in text
    assert "1. The host waits for the whole device once a step at train.py:12 step" in text
    assert "sync-explicit-device" in text


def test_the_json_has_the_promised_names_and_the_gain_of_the_replay(trace, tmp_path):
    code, out, _ = run("diagnose", trace, "--json", cwd=tmp_path)
    assert code == 0
    document = json.loads(out)
    assert document["schema"] == 1
    names = {"bound_by", "step_ns", "gpu_busy", "kernels_per_step", "syncs_per_step", "ceiling_step_ns"}
    assert names <= set(document["summary"])
    assert document["summary"]["step_ns"] == STEP_US * 1000
    assert document["summary"]["syncs_per_step"] == 1
    assert document["summary"]["gpu_busy"] == pytest.approx(0.4)
    first = document["findings"][0]
    assert first["rule"] == "sync-explicit-device"
    assert first["verdict"] == "exposed"
    assert first["severity"] == "high"
    place = {"file": "train.py", "line": 12, "function": "step", "operator": None, "module": None}
    assert first["where"] == place
    assert first["count_per_step"] == 1
    assert len(first["events"]) == STEPS
    # the wait of 320 us goes; what a call costs at least may stay
    assert first["gain_ns_per_step"]["expected"] == pytest.approx(320_000, rel=0.02)
    assert first["gain_share"] == pytest.approx(0.32, rel=0.02)
    gains = [item["gain_ns_per_step"]["expected"] for item in document["findings"] if item["verdict"] == "exposed"]
    assert gains == sorted(gains, reverse=True)


def test_markdown_is_escaped_and_holds_the_four_numbers(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": waiting_program("a<b>|`x`.py(3): f*g*")}))
    code, out, _ = run("diagnose", path, "--markdown", cwd=tmp_path)
    assert code == 0
    assert "| time per step | GPU busy | kernels per step | syncs per step |" in out
    assert "### 1. " in out
    assert "<b>" not in re.sub(r"`+[^`].*?`+", "", out.replace(r"\<b\>", ""))
    assert r"f\*g\*" in out


def test_a_gate_ends_with_1_and_says_why_on_the_page(trace, tmp_path):
    assert run("diagnose", trace, "--fail-on", "high", cwd=tmp_path)[0] == 1
    ignored = run("diagnose", trace, "--fail-on", "high", "--ignore", "sync-explicit-device", "--json", cwd=tmp_path)
    rules = [item["rule"] for item in json.loads(ignored[1])["findings"] if item["severity"] == "high"]
    assert "sync-explicit-device" not in rules


def test_small_gains_are_left_out_on_request(trace, tmp_path):
    document = json.loads(run("diagnose", trace, "--min-gain", "50%", "--json", cwd=tmp_path)[1])
    assert all(item["gain_ns_per_step"] is None for item in document["findings"])


def test_a_project_sets_what_to_ignore_and_when_to_fail(trace, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.torchdiag]\nignore = ["sync-explicit-device"]\nfail-on = "high"\n')
    inside = tmp_path / "deep" / "er"
    inside.mkdir(parents=True)
    document = json.loads(run("diagnose", trace, "--rule", "sync-explicit-device", "--json", cwd=inside)[1])
    assert document["findings"] == []
    (tmp_path / "pyproject.toml").write_text('[tool.torchdiag]\nfail-on = "high"\n')
    assert run("diagnose", trace, cwd=inside)[0] == 1


@pytest.mark.parametrize(
    "settings,told",
    [
        ('[tool.torchdiag]\nignored = ["x"]\n', "has no setting 'ignored'"),
        ('[tool.torchdiag]\nignore = "x"\n', "has to be a list of rule ids"),
        ("[tool.torchdiag]\nmin-gain = 2\n", "min-gain"),
        ("[tool]\ntorchdiag = 3\n", "has to be a table"),
        ("[tool.torchdiag\n", "cannot be read"),
        ('[tool.torchdiag]\nignore = ["no-such-rule"]\n', "no rule 'no-such-rule'"),
    ],
)
def test_a_mistake_in_the_settings_is_one_message(trace, tmp_path, settings, told):
    (tmp_path / "pyproject.toml").write_text(settings)
    code, out, errors = run("diagnose", trace, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert told in errors
    assert "Traceback" not in errors
    assert len(errors.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "arguments,told",
    [
        (["--rule", "sync-explicit-devise"], "did you mean sync-explicit-device"),
        (["--min-gain", "much"], "no share of a step"),
        (["--min-gain", "200%"], "no share of a step"),
        (["--fail-on", "terrible"], "no severity 'terrible'"),
        (["--json", "--markdown"], "exclude one another"),
    ],
)
def test_a_users_mistake_is_one_message(trace, tmp_path, arguments, told):
    code, out, errors = run("diagnose", trace, *arguments, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert told in errors
    assert "Traceback" not in errors


def test_unreadable_and_empty_traces_are_told(tmp_path):
    (tmp_path / "empty.json").write_text('{"traceEvents": []}')
    for name in ("missing.json", "empty.json"):
        code, out, errors = run("diagnose", name, cwd=tmp_path)
        assert (code, out) == (2, "")
        assert name in errors
        assert "Traceback" not in errors


def test_rules_are_listed_and_explained(tmp_path):
    code, listing, _ = run("rules", cwd=tmp_path)
    assert code == 0
    assert "sync-explicit-device" in listing
    code, page, _ = run("rules", "sync-explicit-device", cwd=tmp_path)
    assert code == 0
    assert "## How to fix it" in page
    document = json.loads(run("rules", "--json", cwd=tmp_path)[1])
    assert {"id", "family", "needs", "summary", "documentation"} == set(document["rules"][0])
    code, _, errors = run("rules", "no-such", cwd=tmp_path)
    assert code == 2
    assert "`torchdiag rules` lists all of them" in errors


@pytest.mark.parametrize(
    "removed,won",
    [
        ("sync", 320),
        ("sync-explicit-device", 320),
        # Without the line nothing is left but the 20 us around its frame.
        ("train.py:12", 980),
    ],
)
def test_a_what_if_answers_with_the_replayed_step(trace, tmp_path, removed, won):
    code, out, _ = run("what-if", trace, "--remove", removed, "--json", cwd=tmp_path)
    assert code == 0
    document = json.loads(out)
    assert document["step_ns"] == STEP_US * 1000
    assert document["gain_ns_per_step"] == pytest.approx(1000 * won, rel=0.03)


def test_python_is_what_no_operator_and_no_call_covers(trace, tmp_path):
    # Left are, one after the other: the first kernel's 300 us, 10 until the wait for it ends, 5 until the next launch,
    # its latency of 15, and the second kernel's 100: 430 us a step.
    document = json.loads(run("what-if", trace, "--remove", "python", "--json", cwd=tmp_path)[1])
    assert document["gain_ns_per_step"] == pytest.approx(570_000, rel=0.03)


@pytest.mark.parametrize("removed,told", [("nonsense", "neither sync, python"), ("other.py:3", "no frame of a step")])
def test_a_what_if_about_nothing_is_a_mistake(trace, tmp_path, removed, told):
    code, out, errors = run("what-if", trace, "--remove", removed, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert told in errors
    assert "Traceback" not in errors


def test_damage_is_told_on_the_page(trace, tmp_path):
    (tmp_path / "cut.json").write_text(trace.read_text()[:-300])
    code, out, _ = run("diagnose", "cut.json", cwd=tmp_path)
    assert code == 0
    about = out.partition("About this trace")[2]
    assert "the text ends before the trace does" in about
