"""The traces in `traces/` and their answers, which come from the schedule that was played, never from torchdiag."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from torchdiag.timeline.analysis import analyse
from torchdiag.timeline.result import Breakdown
from torchdiag.trace.load import load

TRACES = Path(__file__).parent.parent / "traces"
ANSWERS: dict[str, dict[str, Any]] = json.loads((TRACES / "answers.json").read_text(encoding="utf-8"))
WITH_DEVICE = [name for name, answer in ANSWERS.items() if answer["devices"]]
WITHOUT_DEVICE = [name for name, answer in ANSWERS.items() if answer["host"]]
WITH_MARKS = [name for name, answer in ANSWERS.items() if answer["steps"]["name"]]
WITH_PLACES = [name for name, answer in ANSWERS.items() if answer["top_places"]]


def breakdown_of(name: str) -> Breakdown:
    return analyse(load(TRACES / name))


def test_every_shipped_trace_has_an_answer() -> None:
    assert {path.name for path in TRACES.glob("*.gz")} == set(ANSWERS)


def test_the_generator_still_makes_the_shipped_files(tmp_path: Path) -> None:
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"
    }  # it imports its neighbours
    subprocess.run([sys.executable, str(TRACES / "make.py"), str(tmp_path)], env=environment, check=True)
    for made in tmp_path.iterdir():
        shipped = TRACES / made.name
        if made.suffix == ".gz":
            assert gzip.decompress(made.read_bytes()) == gzip.decompress(shipped.read_bytes()), made.name
        else:
            assert made.read_text(encoding="utf-8") == shipped.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ANSWERS)
def test_every_event_is_read_and_damage_is_told(name: str) -> None:
    trace = load(TRACES / name)
    assert len(trace) == ANSWERS[name]["events"]
    told = {note.code for note in analyse(trace).trace.quality}
    assert told >= set(ANSWERS[name]["quality"])
    assert ("truncated-json" in told) == ("truncated-json" in ANSWERS[name]["quality"])


@pytest.mark.parametrize("name", WITH_DEVICE)
def test_every_nanosecond_is_where_the_schedule_put_it(name: str) -> None:
    (device,) = breakdown_of(name).devices
    (answer,) = ANSWERS[name]["devices"]
    assert device.id == answer["id"]
    assert asdict(device.window) == answer["window"]
    assert asdict(device.states) == answer["states_ns"]
    assert {cause.cause.value: cause.idle_ns for cause in device.causes} == answer["idle_ns"]
    assert asdict(device.headline) == answer["headline_ns"]


@pytest.mark.parametrize("name", WITHOUT_DEVICE)
def test_without_gpu_work_the_driver_thread_is_accounted_for(name: str) -> None:
    breakdown = breakdown_of(name)
    assert breakdown.devices == ()
    host = breakdown.host
    assert host is not None
    measured = {**asdict(host), "window_ns": host.window.length_ns}
    for figure, expected in ANSWERS[name]["host"].items():
        assert measured[figure] == expected, figure


@pytest.mark.parametrize("name", WITH_MARKS)
def test_each_marked_step_holds_what_was_launched_in_it(name: str) -> None:
    breakdown = breakdown_of(name)
    assert breakdown.steps_source == "marks"
    for column, expected in ANSWERS[name]["steps"].items():
        assert [getattr(step, column) for step in breakdown.steps] == expected, column


@pytest.mark.parametrize("name", WITH_PLACES)
def test_the_top_place_of_a_cause_is_the_users_own_line(name: str) -> None:
    (device,) = breakdown_of(name).devices
    causes = {cause.cause.value: cause for cause in device.causes}
    for cause, expected in ANSWERS[name]["top_places"].items():
        place = causes[cause].places[0]
        assert (place.file, place.line, place.function) == tuple(expected.values()), cause


def test_a_repeated_kernel_sequence_stands_in_for_missing_marks() -> None:
    breakdown = breakdown_of("no_steps_inference.json.gz")
    assert breakdown.steps_source == "period"
    assert {step.kernels for step in breakdown.steps} == {14}
    assert len(breakdown.steps) == 8


def test_shipped_traces_are_small() -> None:
    assert all(path.stat().st_size < 200_000 for path in TRACES.glob("*.gz"))
