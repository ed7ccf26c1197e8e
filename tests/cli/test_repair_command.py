"""Repair writes valid JSON to another file, whole or not at all, and says what it did."""

import gzip
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MALFORMED = Path(__file__).parents[2] / ".." / "shared" / "traces" / "malformed"
GOOD = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2}'
BAD_ESCAPE = '{"ph": "X", "cat": "cpu_op", "name": "C:\\windows", "pid": 1, "tid": 1, "ts": 4, "dur": 2}'
DAMAGED = f'{{"schemaVersion": 1, "traceEvents": [{GOOD},\n{BAD_ESCAPE},\n{GOOD[:30]}'


def repair(*arguments: str | Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "torchdiag", "repair", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "damaged.json"
    path.write_text(DAMAGED)
    return path


def leftovers(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_it_writes_valid_json_and_says_what_it_did(damaged: Path, tmp_path: Path) -> None:
    done = repair(damaged, "-o", tmp_path / "whole.json")
    assert (done.returncode, done.stdout) == (0, "")
    document = json.loads((tmp_path / "whole.json").read_text())
    assert document["schemaVersion"] == 1
    assert [event["name"] for event in document["traceEvents"]] == ["a", "C:\\windows"]
    assert "bad-escape" in done.stderr
    assert "truncated-json" in done.stderr
    assert damaged.read_text() == DAMAGED
    assert leftovers(tmp_path) == {"damaged.json", "whole.json"}


def test_gz_is_written_as_gzip_and_the_same_each_time(damaged: Path, tmp_path: Path) -> None:
    for name in ("whole.json", "one.json.gz", "two.json.gz"):
        assert repair(damaged, "-o", tmp_path / name).returncode == 0
    packed = (tmp_path / "one.json.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "whole.json").read_bytes()
    assert packed == (tmp_path / "two.json.gz").read_bytes()


def test_it_reads_and_writes_pipes(damaged: Path) -> None:
    done = repair("-", "-o", "-", input=DAMAGED)
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["traceEvents"]) == 2
    assert "bad-escape" in done.stderr
    assert done.stdout == repair(damaged, "-o", "-").stdout


def test_json_says_what_was_done(damaged: Path, tmp_path: Path) -> None:
    done = repair(damaged, "-o", tmp_path / "whole.json", "--json")
    report = json.loads(done.stdout)
    assert report["schema"] == 1
    assert report["trace"] == str(damaged)
    assert report["output"] == str(tmp_path / "whole.json")
    assert report["events"] == {"kept": 2, "mended": 1, "dropped": 1}
    assert {note["code"] for note in report["quality"]} >= {"bad-escape", "truncated-json"}


def test_a_sound_trace_stays_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "sound.json").write_text(f'{{"traceEvents": [{GOOD}], "z": {{"k": [1, null, "é"]}}}}')
    done = repair(tmp_path / "sound.json", "-o", tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads((tmp_path / "sound.json").read_text())
    assert "nothing" in done.stderr


def test_it_never_writes_in_place(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "soft").symlink_to(damaged)
    os.link(damaged, tmp_path / "hard")
    (tmp_path / "folder").mkdir()
    roundabout = tmp_path / "folder" / ".." / "damaged.json"
    for source, output in (
        (damaged, damaged),
        (damaged, tmp_path / "soft"),
        (damaged, tmp_path / "hard"),
        (damaged, roundabout),
        (tmp_path / "soft", damaged),
    ):
        done = repair(source, "-o", output, "--force")
        assert done.returncode == 2
        assert "is the trace itself" in done.stderr
    with damaged.open() as file:
        assert repair("-", "-o", damaged, "--force", stdin=file).returncode == 2
    assert damaged.read_text() == DAMAGED


def test_an_existing_file_is_kept_unless_forced(damaged: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken.json"
    taken.write_text("mine")
    taken.chmod(0o640)
    done = repair(damaged, "-o", taken)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert taken.read_text() == "mine"
    assert repair(damaged, "-o", taken, "--force").returncode == 0
    assert json.loads(taken.read_text())
    assert stat.S_IMODE(taken.stat().st_mode) == 0o640


def test_a_link_to_another_file_is_written_through(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "elsewhere" / "real.json")
    assert repair(damaged, "-o", tmp_path / "link.json").returncode == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "elsewhere" / "real.json").read_text())


def test_a_new_file_has_the_usual_mode(damaged: Path, tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        repair(damaged, "-o", tmp_path / "whole.json")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "whole.json").stat().st_mode) == 0o640


def test_a_device_is_written_to_and_stays_a_device(damaged: Path) -> None:
    assert repair(damaged, "-o", os.devnull).returncode == 0
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.parametrize("content", ["", "{}", "not a trace", '{"a": 1}'])
def test_what_holds_nothing_leaves_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "empty.json").write_text(content)
    done = repair(tmp_path / "empty.json", "-o", tmp_path / "whole.json")
    assert done.returncode == 2
    assert done.stderr.startswith("torchdiag: ")
    assert str(tmp_path / "empty.json") in done.stderr
    assert "Traceback" not in done.stderr
    assert leftovers(tmp_path) == {"empty.json"}


def test_what_cannot_be_written_is_said(damaged: Path, tmp_path: Path) -> None:
    for output, says in ((tmp_path, "is a directory"), (tmp_path / "none" / "whole.json", "there is no folder")):
        done = repair(damaged, "-o", output)
        assert done.returncode == 2
        assert says in done.stderr
    assert repair(damaged, "-o", "-", "--json").returncode == 2
    assert leftovers(tmp_path) == {"damaged.json"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_said(damaged: Path) -> None:
    done = repair(damaged, "-o", "/dev/full")
    assert done.returncode == 2
    assert "No space left" in done.stderr


@pytest.mark.skipif(not MALFORMED.exists(), reason="the shared traces are not here")
@pytest.mark.parametrize("path", sorted(MALFORMED.glob("*")), ids=lambda path: path.name)
def test_every_malformed_file_gives_valid_json_or_a_reason(path: Path, tmp_path: Path) -> None:
    output = tmp_path / "whole.json"
    done = repair(path, "-o", output)
    if path.name in {"empty_file.json", "empty_object.json"}:
        assert done.returncode == 2
        assert not output.exists()
        return
    assert done.returncode == 0
    document = json.loads(output.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    events = document["traceEvents"] or [] if isinstance(document, dict) else document
    assert all(isinstance(event, dict) for event in events)
