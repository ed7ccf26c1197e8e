"""A run's folder broken down: numbers of the light recording, places of the detailed one, and what to doubt."""

import pytest
import runs
import written

import torchdiag
from torchdiag.timeline import run_notes
from torchdiag.timeline.result import Cause

US = 1_000


def codes(found):
    return [note.code for note in found.trace.quality]


def test_a_host_run_has_light_figures_and_detailed_places(tmp_path):
    found = torchdiag.breakdown(runs.folder(tmp_path / "run"))
    assert found.trace.path == str(tmp_path / "run")
    assert (found.host.operator_ns, found.host.python_ns, found.host.window.length_ns) == (80 * US, 120 * US, 200 * US)
    # Of the detailed 300 us 100 were the operator's, 100 of augment's and 100 of step's own; brought to 80 and 120.
    assert [(place.label, place.idle_ns, place.event) for place in found.host.places] == [
        ("aten::mm at train.py:88 step", 80 * US, None),
        ("data.py:5 augment", 60 * US, None),
        ("train.py:88 step", 60 * US, None),
    ]
    assert "places-scaled" in codes(found)
    assert not {"no-stacks", "no-shapes"} & set(codes(found))


def gpu_events(scale, frames):
    """A step of 100 us x scale: Python up to a launch at 60..70, its kernel at 80..100."""
    at = [number * scale * US for number in (0, 60, 10, 80, 20, 100)]
    events = [written.mark(0, 0, at[5]), written.call(at[1], at[2], 1), written.kernel(at[3], at[4], 1)]
    return [*events, *(written.frame(start * scale * US, length * scale * US, name) for start, length, name in frames)]


def test_a_cause_keeps_its_time_and_takes_the_places(tmp_path):
    detail = gpu_events(3, [(0, 100, "train.py(88): step"), (10, 15, "data.py(5): augment")])
    found = torchdiag.breakdown(runs.folder(tmp_path, light=gpu_events(1, []), detail=detail))
    (device,) = found.devices
    assert sum(cause.idle_ns for cause in device.causes) == device.states.idle == 80 * US
    python = next(cause for cause in device.causes if cause.cause is Cause.PYTHON)
    assert python.idle_ns == 60 * US
    assert [(place.label, place.idle_ns) for place in python.places] == [
        ("train.py:88 step", 45 * US),
        ("data.py:5 augment", 15 * US),
    ]


def test_top_counts_places(tmp_path):
    assert len(torchdiag.breakdown(runs.folder(tmp_path), top=1).host.places) == 1


def test_a_part_of_a_run_keeps_the_places_of_that_part(tmp_path):
    found = torchdiag.breakdown(runs.folder(tmp_path), steps="0")
    assert found.host.window.length_ns == 100 * US
    assert "places-scaled" not in codes(found)
    assert all("train.py" not in place.label for place in found.host.places)


@pytest.mark.parametrize("detail", [False, "no stacks"])
def test_without_stacks_the_light_recording_stands_alone(tmp_path, detail):
    found = torchdiag.breakdown(runs.folder(tmp_path, detail=runs.light_events() if detail else False))
    assert found.host.operator_ns == 80 * US
    assert "places-scaled" not in codes(found)


def test_a_damaged_detailed_recording_is_gone_without(tmp_path):
    folder = runs.folder(tmp_path, detail=False)
    (folder / "detail.json.gz").write_bytes(b"nothing")
    assert torchdiag.breakdown(folder).host.operator_ns == 80 * US


def test_what_was_recorded_is_that_of_the_result(tmp_path):
    found = torchdiag.breakdown(runs.folder(tmp_path))
    assert [(item.kind, item.count, item.steps) for item in found.recorded] == [
        ("exception", 3, 3),
        ("throw", 6, 3),
        ("collection", 1, 3),
        ("warning", 3, 3),
    ]
    assert found.to_dict()["recorded"][0]["name"] == "KeyError"


def test_a_folder_is_loaded_as_its_light_recording(tmp_path):
    assert len(torchdiag.load(runs.folder(tmp_path))) == 4


def test_a_folder_that_is_no_run_is_told(tmp_path):
    with pytest.raises(torchdiag.TorchdiagError, match="not the folder of a run"):
        torchdiag.breakdown(tmp_path)


def inflated(light_ms, detailed_ms=200):
    passes = list(runs.result().passes)
    step_ns = (light_ms * runs.MS,) * 3
    passes[2] = runs.PassResult(name="light", step_ns=step_ns, trace="trace.json.gz", recorded=3)
    passes[3] = runs.PassResult(name="detailed", step_ns=(detailed_ms * runs.MS,), recorded=1)
    return tuple(passes)


def test_an_inflated_python_share_is_marked_and_bounded(tmp_path):
    # Steps of 100 ms took 200 under the profiler, 60 % or 120 ms of them in Python. 100 ms came on top. If all of them
    # were Python's, it had 20 of the 100 ms; if none, more than all of them.
    found = torchdiag.breakdown(runs.folder(tmp_path, passes=inflated(200)))
    (note,) = [note for note in found.trace.quality if note.code == "python-inflated"]
    assert "2.00 times" in note.message
    assert "60.0 %" in note.message
    assert "between 20.0 and 100.0 %" in note.message


@pytest.mark.parametrize(
    ("light_ms", "share", "low", "high"), [(130, 0.5, 0.35, 0.65), (100, 0.5, 0.5, 0.5), (90, 0.5, 0.45, 0.45)]
)
def test_the_bounds_of_the_python_share(light_ms, share, low, high):
    bounds = run_notes.python_bounds(runs.result(passes=inflated(light_ms)), share)
    assert bounds == pytest.approx((low, high))


def test_inflated_stacks_are_corrected_by_the_light_recording(tmp_path):
    found = torchdiag.breakdown(runs.folder(tmp_path))
    (note,) = [note for note in found.trace.quality if note.code == "detail-inflated"]
    assert "2.00 times" in note.message
    assert "1.20 times" in note.message
    assert "detail-inflated" not in codes(torchdiag.breakdown(runs.folder(tmp_path, passes=inflated(100, 110))))


def test_what_could_not_be_recorded_is_told(tmp_path):
    recorder = runs.recorder(
        throws=None, throws_missing="No probe.", exceptions=None, untracked=2, throws_dropped=5, interrupted=True
    )
    found = torchdiag.breakdown(runs.folder(tmp_path, recorder=recorder))
    assert {
        "exceptions-not-recorded",
        "throws-not-recorded",
        "exceptions-untracked",
        "throws-dropped",
        "exceptions-interrupted",
    } <= set(codes(found))
    assert any(note.message == "C++ exceptions were not recorded: No probe." for note in found.trace.quality)
