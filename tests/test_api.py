"""`import torchdiag` and what it offers."""

import json
import subprocess
import sys

import pytest
from report import breakdowns

import torchdiag
from torchdiag import api

EVENTS = [
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10, "dur": 30, "args": {"device": 0}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 50, "dur": 50, "args": {"device": 0}},
]


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "trace.json"
    found.write_text(json.dumps({"traceEvents": EVENTS}))
    return found


def test_importing_loads_nothing():
    code = "import sys, torchdiag; print(*sorted({'numpy', 'rich', 'pandas', 'typer', 'msgspec'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_what_is_offered_is_there():
    assert {"load", "breakdown", "Breakdown", "Trace", "TorchdiagError", "__version__"} <= set(dir(torchdiag))
    assert torchdiag.breakdown is api.breakdown
    assert issubclass(torchdiag.TorchdiagError, Exception)
    with pytest.raises(AttributeError, match="nothing"):
        _ = torchdiag.nothing


def test_a_path_and_a_trace_give_the_same(path):
    trace = torchdiag.load(path)
    assert torchdiag.breakdown(trace) == torchdiag.breakdown(path) == torchdiag.breakdown(str(path))


def test_a_breakdown_has_its_forms(path):
    found = torchdiag.breakdown(path)
    assert found.devices[0].states.compute == 80_000
    assert found.devices[0].window.length_ns == 90_000
    assert found.to_dict()["devices"][0]["idle_ns"]["unattributed"] == 10_000
    assert found.to_frame()["state_idle_ns"].tolist() == [10_000]
    assert found._repr_html_().startswith("<style>")


def test_a_window_in_numbers_is_nanoseconds_of_the_trace(path):
    found = torchdiag.breakdown(path, window=(20_000, 60_000))
    assert found.devices[0].states.compute == 30_000
    assert torchdiag.breakdown(path, window="10us:50us") == found


def test_steps_follow_one_another(path):
    with pytest.raises(torchdiag.TorchdiagError, match="follow one another"):
        torchdiag.breakdown(path, steps=slice(0, 4, 2))


def test_a_breakdown_is_the_result_of_the_analysis_with_methods():
    assert issubclass(torchdiag.Breakdown, type(breakdowns.training()))
