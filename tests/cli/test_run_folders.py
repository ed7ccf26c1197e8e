"""The folder of a run where the commands take a trace."""

import gzip
import json
import os
import subprocess
import sys

import pytest
import runs


def run(*arguments, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "torchdiag", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100"},
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path):
    return runs.folder(tmp_path / "runs" / "one")


def test_breakdown_of_one_run(folder, tmp_path):
    code, text, errors = run("breakdown", "runs/one", cwd=tmp_path)
    assert (code, errors) == (0, "")
    assert "60 % of 2 steps (200 µs) in Python" in text
    assert "aten::mm at train.py:88 step" in text
    assert "KeyError at train.py:12 step, handled at line 14" in text
    code, text, _ = run("breakdown", "runs/one", "--json", cwd=tmp_path)
    document = json.loads(text)
    assert (document["trace"]["path"], document["host"]["host_ns"]["operator"]) == ("runs/one", 80_000)
    assert [item["kind"] for item in document["recorded"]] == ["exception", "throw", "collection", "warning"]


def test_a_directory_of_runs_is_a_row_for_each(folder, tmp_path):
    runs.folder(tmp_path / "runs" / "two", light=False, detail=False)
    code, text, errors = run("breakdown", "runs", cwd=tmp_path)
    assert code == 2
    lines = [line.split("  ")[0] for line in text.splitlines()]
    assert "one" in lines and "two" in lines
    assert "main thread, 200 µs: 60 % in Python, 40 % in operators" in text
    assert "recorded no trace" in text
    assert "detail.json.gz" not in text + errors


def test_repair_takes_the_light_recording(folder, tmp_path):
    code, _, errors = run("repair", "runs/one", "-o", "whole.json.gz", cwd=tmp_path)
    assert code == 0, errors
    events = json.loads(gzip.decompress((tmp_path / "whole.json.gz").read_bytes()))["traceEvents"]
    assert len(events) == len(runs.light_events())
    code, _, errors = run("repair", "runs/one", "-o", "runs/one/trace.json.gz", "--force", cwd=tmp_path)
    assert code == 2
    assert "is the trace itself" in errors


@pytest.mark.parametrize("arguments", [["repair", "runs", "-o", "x.json"], ["open", "runs", "--no-browser"]])
def test_a_folder_of_runs_is_no_run_but_names_one(folder, tmp_path, arguments):
    code, _, errors = run(*arguments, cwd=tmp_path)
    if "port 9001" in errors:
        pytest.skip("port 9001 is taken on this machine")
    assert code == 2
    assert "runs is not the folder of a run; the latest run in it is runs/one" in errors
