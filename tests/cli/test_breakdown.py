"""`torchdiag breakdown` as a user runs it."""

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

US = 1_000


def run(*arguments, columns=80, stdin=None, cwd=None, **environment):
    """The command with a pipe for standard output: (exit code, output, errors)."""
    env = {**os.environ, "COLUMNS": str(columns), **environment}
    done = subprocess.run(
        [sys.executable, "-m", "torchdiag", "breakdown", *map(str, arguments)],
        capture_output=True,
        env=env,
        input=stdin,
        cwd=cwd,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def complete(name, category, start, duration, tid=1, **arguments):
    return {
        "ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": duration, "args": arguments
    }  # fmt: skip


def events(steps=3, *, frame="train.py(12): step", operator="aten::mm", kernel="gemm", device=0):
    """Steps of 100 us. In each, a frame all over it, an operator at 20..40, its launch at 30..40, a kernel at 50..90.

    Of 3 steps (300 us): compute 3 x 40; Python 20 + 30 + 30 + 10 (what precedes each operator, and the end);
    framework, launch and launch latency 3 x 10 each.
    """
    found = []
    for number in range(steps):
        at = 1000 + 100 * number
        found += [
            complete(f"ProfilerStep#{number + 7}", "user_annotation", at, 100),
            complete(frame, "python_function", at, 100),
            complete(operator, "cpu_op", at + 20, 20),
            complete("cudaLaunchKernel", "cuda_runtime", at + 30, 10, correlation=number + 1),
            complete(kernel, "kernel", at + 50, 40, tid=7, correlation=number + 1, device=device, stream=7),
        ]
    return found


def write(path, found, **top_level):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"schemaVersion": 1, **top_level, "traceEvents": found})
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.fixture
def trace(tmp_path):
    return write(tmp_path / "small.json", events())


def first_sentence(text):
    return " ".join(text.split("\n\n")[0].split())


@pytest.mark.parametrize("columns", [80, 200])
def test_the_page(trace, columns):
    code, text, errors = run(trace, columns=columns)
    assert (code, errors) == (0, "")
    assert first_sentence(text) == (
        "GPU 0 was busy 40 % of 3 steps (300 µs); the largest loss is 30 % waiting for Python at train.py:12 step."
    )
    assert all(len(line) <= columns for line in text.splitlines())
    assert "\x1b" not in text
    bar = next(line for line in text.splitlines() if line.startswith("█"))
    assert [bar.count(fill) for fill in "█▓▒░"] == [columns * 40 // 100, 0, columns * 30 // 100, columns * 30 // 100]
    for label, share, spent in (
        ("compute", "40.0 %", "120 µs"),
        ("  Python", "30.0 %", "90.0 µs"),
        ("    train.py:12 step", "30.0 %", "90.0 µs"),
        ("  framework", "10.0 %", "30.0 µs"),
        ("  launch", "10.0 %", "30.0 µs"),
        ("  launch latency", "10.0 %", "30.0 µs"),
    ):
        line = next(line for line in text.splitlines() if re.match(rf"{label}( {{2,}}|$)", line))
        assert share in line and spent in line
    assert re.search(r"ProfilerStep#8 +100 µs +40\.0 % +1 +1 +0 +0 +0 B", text)


def test_displayed_shares_sum_to_a_hundred(trace):
    _, text, _ = run(trace)
    account = text[text.index("where the time went") :].split("\n\n")[0].splitlines()[1:]
    tenths = [(len(line) - len(line.lstrip()), re.search(r"(\d+)\.(\d) %", line)) for line in account]
    states = [int(match[1] + match[2]) for indent, match in tenths if indent == 0]
    causes = [int(match[1] + match[2]) for indent, match in tenths if indent == 2]
    assert sum(states) == 1000
    assert sum(causes) == states[-1]


def test_json_is_one_pure_document(trace):
    code, text, errors = run(trace, "--json")
    assert (code, errors) == (0, "")
    document = json.loads(text)
    assert document["schema"] == 1
    assert document["steps_source"] == "marks"
    (device,) = document["devices"]
    assert device["window"] == {"start_ns": 1000 * US, "end_ns": 1300 * US, "source": "steps"}
    assert device["states_ns"]["compute"] == 120 * US
    assert {cause: spent for cause, spent in device["idle_ns"].items() if spent} == {
        "python": 90 * US,
        "framework": 30 * US,
        "launch": 30 * US,
        "launch_latency": 30 * US,
    }
    assert device["headline_ns"] == {"active": 120 * US, "transfer": 0, "python_overhead": 90 * US, "idle": 90 * US}
    assert [step["name"] for step in document["steps"]] == ["ProfilerStep#7", "ProfilerStep#8", "ProfilerStep#9"]


def test_csv(trace):
    code, text, errors = run(trace, "--csv")
    assert (code, errors) == (0, "")
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["path"] == str(trace)
    assert row["headline_active_ns"] == str(120 * US)
    assert row["idle_python_ns"] == str(90 * US)


def test_steps_and_windows_narrow(trace):
    _, text, _ = run(trace, "--json", "--steps", "1:3")
    assert json.loads(text)["devices"][0]["window"] == {"start_ns": 1100 * US, "end_ns": 1300 * US, "source": "steps"}
    _, text, _ = run(trace, "--json", "--window", "50us:0.09ms")
    (device,) = json.loads(text)["devices"]
    assert device["window"] == {"start_ns": 1050 * US, "end_ns": 1090 * US, "source": "selection"}
    assert device["states_ns"]["compute"] == 40 * US
    _, text, _ = run(trace, "--json", "--window", f"{1200 * US}:")
    assert json.loads(text)["devices"][0]["window"]["start_ns"] == 1200 * US


def test_one_device_of_two(tmp_path):
    other = events(device=1)
    for event in other:
        if "correlation" in event["args"]:
            event["args"]["correlation"] += 10
    path = write(tmp_path / "two.json", events() + other)
    _, text, _ = run(path)
    assert "busiest of 2 GPUs" in text
    _, text, _ = run(path, "--device", "1", "--json")
    assert [device["id"] for device in json.loads(text)["devices"]] == [1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--steps", "9:12"], ["9:12", "3 steps", "0 to 2"]),
        (["--steps", "two"], ["two", "2:5"]),
        (["--device", "7"], ["7", "0"]),
        (["--window", "5:"], []),
        (["--window", "12parsecs:"], ["12parsecs", "ms"]),
        (["--window", "2s:3s"], ["2s:3s", "outside", "0.300ms"]),
        (["--window", "9us:3us"], ["holds no time"]),
        (["--json", "--csv"], ["--json", "--csv"]),
    ],
)
def test_wrong_options_give_one_message(trace, arguments, told):
    code, text, errors = run(trace, *arguments)
    if not told:  # 5 ns of the trace's clock lies before the trace: all of it
        assert code == 0
        return
    assert (code, text) == (2, "")
    assert errors.startswith("torchdiag: ") and errors.count("\n") == 1
    for words in told:
        assert words in errors


def test_places_are_counted_by_top(tmp_path):
    found = events(1, frame="a.py(1): f") + [
        {**event, "ts": event["ts"] + 100, "args": {**event["args"], **({"correlation": 5} if event["args"] else {})}}
        for event in events(1, frame="b.py(2): g")
    ]
    path = write(tmp_path / "frames.json", found)
    _, text, _ = run(path, "--top", "1", "--json")
    assert [
        len(cause["places"]) for cause in json.loads(text)["devices"][0]["causes"] if cause["cause"] == "python"
    ] == [1]
    _, text, _ = run(path, "--top", "2", "--json")
    assert [
        len(cause["places"]) for cause in json.loads(text)["devices"][0]["causes"] if cause["cause"] == "python"
    ] == [2]


HOSTILE = "x\x1b[2J\x1b]0;owned\x07[bold red]y[/]\u202e<script>\nGPU 0 was busy 100 %"


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]])
def test_hostile_names_stay_text(tmp_path, form):
    path = write(
        tmp_path / "hostile.json",
        events(frame=f"{HOSTILE}.py(3): {HOSTILE}", operator=HOSTILE, kernel=HOSTILE),
        deviceProperties=[{"id": 0, "name": HOSTILE}],
        pytorch_version=HOSTILE,
    )
    for columns in (80, 200):
        code, text, _ = run(path, *form, columns=columns)
        assert code == 0
        assert all(character.isprintable() for character in text.replace("\n", ""))
        assert sum(line.startswith("GPU 0 was busy") for line in text.splitlines()) == (not form)


def test_ascii_output_where_the_encoding_has_no_blocks(trace):
    code, text, errors = run(trace, PYTHONIOENCODING="ascii")
    assert (code, errors) == (0, "")
    assert text.isascii()
    assert f"{'#' * 32}{'+' * 24}{'.' * 24}" in text
    assert "300 us" in text


def test_standard_input(trace):
    code, text, _ = run("-", "--json", stdin=trace.read_bytes())
    assert code == 0
    assert json.loads(text)["devices"][0]["states_ns"]["compute"] == 120 * US


def test_a_host_only_trace_has_its_page(tmp_path):
    host = [event for event in events() if event["cat"] in {"user_annotation", "python_function", "cpu_op"}]
    code, text, _ = run(write(tmp_path / "cpu.json", host))
    assert code == 0
    assert text.startswith("This trace holds no GPU work")


def test_a_trace_cut_before_its_gpu_work_does_not_deny_it(tmp_path):
    host = [event for event in events() if event["cat"] in {"user_annotation", "python_function", "cpu_op"}]
    whole = write(tmp_path / "whole.json", host)
    (tmp_path / "cut.json").write_text(whole.read_text().rstrip().rstrip("}").rstrip().rstrip("]"))
    code, text, _ = run(tmp_path / "cut.json")
    assert code == 0
    assert "cannot be told" in " ".join(text.split())
    assert "This trace holds no GPU work" not in text


def test_unrecorded_gpu_work_is_not_idle(tmp_path):
    host = [event for event in events() if event["cat"] != "kernel"]
    code, text, _ = run(write(tmp_path / "lost.json", host))
    assert code == 0
    assert "not recorded" in first_sentence(text)
    assert not re.search(r"\bidle\b", text.split("About this trace")[0])


@pytest.mark.parametrize("content", ["", "{}", '{"traceEvents": []}', "not a trace"])
def test_nothing_to_read_is_one_sentence_and_exit_2(tmp_path, content):
    path = tmp_path / "none.json"
    path.write_text(content)
    code, text, errors = run(path)
    assert (code, text) == (2, "")
    assert "Traceback" not in errors and errors.startswith("torchdiag: ")


def test_several_files_one_of_them_broken(tmp_path):
    good = write(tmp_path / "runs" / "good.json.gz", events())
    broken = tmp_path / "runs" / "broken.json"
    broken.write_text("nothing at all")
    cpu = write(tmp_path / "runs" / "cpu.json", [event for event in events() if event["cat"] == "cpu_op"])
    for columns in (80, 200):
        code, text, errors = run(good, broken, cpu, tmp_path / "absent.json", columns=columns)
        assert code == 2
        lines = text.splitlines()
        header = next(number for number, line in enumerate(lines) if "window  active" in line)
        rows = "\n".join(lines[header + 1 :])
        assert re.search(r"good\.json\.gz\s+GPU 0 +300 µs +40 % +0 % +30 % +30 % +Python", rows)
        assert re.search(r"broken\.json\s+failed: ", rows)
        assert re.search(r"cpu\.json\s+no GPU work", rows)
        assert re.search(r"absent\.json\s+failed: ", rows)
        assert rows.index("good.json") < rows.index("broken.json") < rows.index("cpu.json") < rows.index("absent.json")
        assert all(len(line) <= columns for line in lines)
        assert "2 of 4 traces gave no breakdown" in errors
        assert "Traceback" not in errors


def test_several_files_in_one_document(tmp_path):
    good = write(tmp_path / "good.json", events())
    broken = tmp_path / "broken.json"
    broken.write_text("nothing at all")
    code, text, _ = run(good, broken, "--json")
    assert code == 2
    document = json.loads(text)
    assert document["schema"] == 1
    first, second = document["breakdowns"]
    assert first["devices"][0]["states_ns"]["compute"] == 120 * US
    assert second["path"] == str(broken)
    assert second["error"]
    code, text, _ = run(good, broken, "--csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert code == 2
    assert [bool(row["error"]) for row in rows] == [False, True]


def test_directories_and_patterns(tmp_path):
    write(tmp_path / "a" / "one.json", events())
    write(tmp_path / "a" / "deep" / "two.json.gz", events())
    (tmp_path / "a" / "config.json").write_text('{"learning_rate": 0.1}')
    (tmp_path / "a" / "notes.txt").write_text("no trace")
    code, text, _ = run(tmp_path / "a", "--csv")
    assert code == 0
    assert [Path(row["path"]).name for row in csv.DictReader(io.StringIO(text))] == ["two.json.gz", "one.json"]
    code, text, _ = run("a/**/*.json*", "--csv", cwd=tmp_path)
    names = [row["path"] for row in csv.DictReader(io.StringIO(text))]
    assert names == ["a/config.json", "a/deep/two.json.gz", "a/one.json"]
    assert code == 2  # a pattern names its files: config.json is asked for, and is no trace
    for nothing in ("b/*.json", "a/deep/nothing/"):
        code, text, errors = run(nothing, cwd=tmp_path)
        assert (code, text) == (2, "")
        assert errors.count("\n") == 1


def test_standard_input_is_read_alone(trace):
    code, _, errors = run("-", trace)
    assert code == 2
    assert "standard input" in errors


def test_interrupted_it_keeps_what_was_printed(tmp_path):
    write(tmp_path / "a.json", events())
    os.mkfifo(tmp_path / "b.json")  # nobody ever writes to it
    process = subprocess.Popen(
        [sys.executable, "-m", "torchdiag", "breakdown", "a.json", "b.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "80"},
        start_new_session=True,
    )
    assert process.stdout is not None
    printed = process.stdout.readline() + process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    started = time.monotonic()
    rest, errors = process.communicate(timeout=30)
    assert time.monotonic() - started < 20
    assert process.returncode == 130
    assert b"40 %" in printed + rest
    assert b"Traceback" not in errors
