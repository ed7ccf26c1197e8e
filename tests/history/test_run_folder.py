"""The folder of a run: made new, found again, and told from what is none."""

import json
import os
from datetime import datetime

import pytest
import runs

from torchdiag.errors import TorchdiagError
from torchdiag.history import run_folder, run_result

NOON = datetime(2026, 1, 2, 12, 0, 0)


def test_a_run_is_read_as_it_was_written(tmp_path):
    folder = runs.folder(tmp_path / "run")
    run = run_folder.read(folder)
    assert run.result == runs.result()
    assert (run.trace, run.detail, run.output) == (
        folder / "trace.json.gz",
        folder / "detail.json.gz",
        folder / "output.log",
    )


def test_what_was_not_recorded_is_not_there(tmp_path):
    run = run_folder.read(runs.folder(tmp_path, light=False, detail=False))
    assert (run.trace, run.detail) == (None, None)


def test_a_run_that_was_killed_is_read_from_what_it_left(tmp_path):
    folder = runs.folder(tmp_path, status="partial")
    (folder / "result.json").rename(folder / "partial.json")
    assert run_folder.is_run(folder)
    assert run_folder.read(folder).result.status == "partial"


@pytest.mark.parametrize(
    ("target", "changes", "name"),
    [
        ("yolov3", {}, "yolov3-train-20260102-120000"),
        ("yolov3", {"mode": "eval"}, "yolov3-eval-20260102-120000"),
        ("../a b/train.py", {"target_kind": "script"}, "train-20260102-120000"),
        ("pkg.module:step", {"target_kind": "function"}, "pkg.module_step-20260102-120000"),
        ("///", {"target_kind": "module"}, "run-20260102-120000"),
    ],
)
def test_a_folder_is_named_after_what_is_run(tmp_path, monkeypatch, target, changes, name):
    monkeypatch.chdir(tmp_path)
    made = run_folder.make(None, runs.options(target=target, **changes), NOON)
    assert str(made) == f"torchdiag-runs/{name}"
    assert made.is_dir()


def test_two_runs_of_one_second_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second, third = (run_folder.make(None, runs.options(), NOON) for _ in range(3))
    assert (second.name, third.name) == (f"{first.name}-2", f"{first.name}-3")


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "empty").mkdir()
    assert run_folder.make(str(tmp_path / "empty"), runs.options(), NOON) == tmp_path / "empty"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(TorchdiagError, match=r"full is not empty.*--out"):
        run_folder.make(str(tmp_path / "full"), runs.options(), NOON)
    runs.folder(tmp_path / "run")
    with pytest.raises(TorchdiagError, match="holds a run already"):
        run_folder.make(str(tmp_path / "run"), runs.options(), NOON)
    (tmp_path / "file").touch()
    with pytest.raises(TorchdiagError, match="cannot make the folder"):
        run_folder.make(str(tmp_path / "file"), runs.options(), NOON)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cannot_be_written_to_is_told(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(TorchdiagError, match="cannot make the folder"):
        run_folder.make(str(tmp_path / "run"), runs.options(), NOON)


def test_only_a_folder_nothing_came_of_is_discarded(tmp_path):
    kept = runs.folder(tmp_path / "kept")
    run_folder.discard_empty(kept)
    assert run_folder.is_run(kept)
    empty = run_folder.make(str(tmp_path / "empty"), runs.options(), NOON)
    (empty / "output.log").touch()
    run_folder.discard_empty(empty)
    assert not empty.exists()


@pytest.mark.parametrize(
    ("prepare", "told"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.touch(), "is a file"),
        (lambda path: path.mkdir(), "no result.json"),
        (lambda path: runs.folder(path / "b" / ".." / "a"), "latest run in it is .*/a"),
    ],
)
def test_what_is_no_run_is_told_in_a_sentence(tmp_path, prepare, told):
    prepare(tmp_path / "it")
    with pytest.raises(TorchdiagError, match=told):
        run_folder.read(tmp_path / "it")


def test_a_result_of_another_kind_or_age_is_told(tmp_path):
    folder = runs.folder(tmp_path)
    document = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps({**document, "schema": run_result.SCHEMA + 1}))
    with pytest.raises(TorchdiagError, match="newer torchdiag"):
        run_folder.read(folder)
    (folder / "result.json").write_text(json.dumps({"learning_rate": 0.1}))
    with pytest.raises(TorchdiagError, match="not the result of a run"):
        run_folder.read(folder)
    (folder / "result.json").write_text("{")
    with pytest.raises(TorchdiagError, match="not the result of a run"):
        run_folder.read(folder)


def test_fields_of_a_later_version_are_passed_over(tmp_path):
    folder = runs.folder(tmp_path)
    document = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps({**document, "mood": "good"}))
    assert run_folder.read(folder).result == runs.result()


def test_the_trace_of_a_path(tmp_path):
    assert run_folder.trace_of("-") == "-"
    assert run_folder.trace_of(tmp_path / "none.json") == str(tmp_path / "none.json")
    folder = runs.folder(tmp_path / "run")
    assert run_folder.trace_of(folder) == str(folder / "trace.json.gz")
    failure = run_result.Failure(kind="timeout", message="It took too long.")
    bare = runs.folder(tmp_path / "bare", light=False, detail=False, failure=failure, status="failed")
    with pytest.raises(TorchdiagError, match=r"recorded no trace: It took too long\."):
        run_folder.trace_of(bare)
    with pytest.raises(TorchdiagError, match="not the folder of a run"):
        run_folder.trace_of(tmp_path)


def test_a_result_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    folder = runs.folder(tmp_path)
    before = (folder / "result.json").read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        run_result.write(runs.result(status="failed"), folder / "result.json")
    assert (folder / "result.json").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == [
        "detail.json.gz",
        "output.log",
        "result.json",
        "trace.json.gz",
    ]
