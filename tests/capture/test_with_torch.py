"""What is known of torch itself, seen through the recorders; skipped where torch is not installed."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from torchdiag.capture import throw_probe
from torchdiag.capture.clock import ClockMap, now_ns, read_pair
from torchdiag.capture.exception_records import Outcome
from torchdiag.capture.exceptions import ExceptionRecorder
from torchdiag.capture.tracks import to_trace_events
from torchdiag.capture.warnings_recorder import WarningsRecorder

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch

# Prints the number of C++ exceptions and of Python exceptions of one call, and the types of the former.
SCRIPT = """
import json, sys, warnings
import torch
from torchdiag.capture.exceptions import ExceptionRecorder
from torchdiag.capture.throw_recorder import ThrowRecorder

warnings.simplefilter("ignore")
torch.manual_seed(0)
plain = torch.randn(4, 8)
linear = torch.nn.Linear(8, 8)
quantized = torch.quantize_per_tensor(plain, 0.1, 128, torch.quint8)
image = torch.quantize_per_tensor(torch.randn(1, 3, 8, 8), 0.1, 128, torch.quint8)
weight = torch.quantize_per_tensor(torch.randn(8, 8), 0.1, 0, torch.qint8)
filters = torch.quantize_per_tensor(torch.randn(4, 3, 3, 3), 0.1, 0, torch.qint8)
packed = torch.ops.quantized.linear_prepack(weight, None)
packed_filters = torch.ops.quantized.conv2d_prepack(filters, None, [1, 1], [0, 0], [1, 1], 1)

def mismatch():
    try:
        torch.mm(plain, plain)
    except RuntimeError:
        pass

cases = {
    "add": lambda: torch.add(plain, plain),
    "Linear": lambda: linear(plain),
    "relu of quantized": lambda: torch.relu(quantized),
    "quantized.add": lambda: torch.ops.quantized.add(quantized, quantized, 0.1, 0),
    "quantized.linear_prepack": lambda: torch.ops.quantized.linear_prepack(weight, None),
    "quantized.linear": lambda: torch.ops.quantized.linear(quantized, packed, 1.0, 0),
    "quantized.linear_relu": lambda: torch.ops.quantized.linear_relu(quantized, packed, 1.0, 0),
    "quantized.linear_dynamic": lambda: torch.ops.quantized.linear_dynamic(plain, packed),
    "quantized.conv2d": lambda: torch.ops.quantized.conv2d(image, packed_filters, 1.0, 0),
    "mismatch": mismatch,
}
told = {}
for name, call in cases.items():
    call()
    with ThrowRecorder() as throws, ExceptionRecorder() as exceptions:
        for _ in range(3):
            call()
            throws.step()
    summary = throws.summary()
    told[name] = [[step.count for step in summary.steps], exceptions.summary().count,
                  sorted({site.type for site in summary.sites}), all(t.caught_ns for t in summary.throws)]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def thrown():
    """For each case: C++ exceptions of each of 3 calls, Python exceptions of all, C++ types, all caught?."""
    if not throw_probe.available().loadable:
        pytest.skip(throw_probe.available().reason)
    environment = {**os.environ, **throw_probe.environment()}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["add", "Linear", "relu of quantized", "quantized.add", "quantized.linear_prepack"])
def test_operators_without_packed_parameters_throw_nothing(thrown, name):
    assert thrown[name] == [[0, 0, 0], 0, [], True]


@pytest.mark.parametrize(
    "name", ["quantized.linear", "quantized.linear_relu", "quantized.linear_dynamic", "quantized.conv2d"]
)
def test_operators_with_packed_parameters_throw_on_every_call(thrown, name):
    # Looking for __torch_function__ on the packed parameters, a ScriptObject: its attribute error becomes a Python one,
    # and that a C++ one again. No Python frame sees any of it.
    counts, in_python, types, caught = thrown[name]
    assert counts[0] == counts[1] == counts[2] > 0
    assert in_python == 0
    assert caught
    if torch.__version__.startswith("2.14."):
        assert counts == [2, 2, 2]
        assert types == ["pybind11::error_already_set", "torch::jit::ObjectAttributeError"]


def test_an_error_of_an_operator_is_seen_on_both_sides(thrown):
    counts, in_python, types, caught = thrown["mismatch"]
    assert counts == [1, 1, 1]
    assert types == ["c10::Error"]
    assert in_python == 3
    assert caught


def test_a_missing_attribute_of_a_module_raises_in_python():
    module = torch.nn.Linear(2, 2)
    with ExceptionRecorder() as recorder:
        for _ in range(3):
            hasattr(module, "nothing")
        module(torch.randn(1, 2))
        _ = module.bias
    (site,) = recorder.summary().sites
    assert (site.type, site.count, site.outcome) == ("AttributeError", 3, Outcome.LEFT_TO_C)
    assert site.raised_at.file.endswith("torch/nn/modules/module.py")
    assert site.raised_at.function == "Module.__getattr__"
    assert site.handled_at.file == __file__


def test_a_warning_of_c_code_is_counted_where_it_is_shown():
    with pytest.warns(UserWarning), WarningsRecorder() as recorder:
        torch.from_numpy(read_only())
    (site,) = recorder.summary().sites
    assert (site.category, site.count, site.shown) == ("UserWarning", 1, 1)
    assert site.issued_at.file == __file__


def read_only():
    import numpy as np  # noqa: PLC0415

    array = np.zeros(3)
    array.flags.writeable = False
    return array


def test_stamps_land_where_kineto_puts_the_same_moment(tmp_path):
    first = read_pair()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        stamps = []
        for index in range(20):
            with torch.profiler.record_function(f"before {index}"):
                pass
            stamps.append(now_ns())
            with torch.profiler.record_function(f"after {index}"):
                pass
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))
    clock = ClockMap(first, read_pair())
    trace = json.loads(path.read_text())
    base = int(trace.get("baseTimeNanoseconds", 0))
    events = {event["name"]: event for event in trace["traceEvents"] if "ts" in event and "name" in event}
    for index, stamp in enumerate(stamps):
        at = clock.to_trace_ns(stamp, base) / 1000
        # Kineto's own clock is a line through two pairs, each good to some microseconds.
        assert events[f"before {index}"]["ts"] - 20 <= at <= events[f"after {index}"]["ts"] + 20


def test_its_events_pass_through_the_profilers_trace(tmp_path):
    with (
        torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler,
        ExceptionRecorder() as recorder,
    ):
        for _ in range(2):
            hasattr(torch.nn.ReLU(), "nothing")
            torch.add(torch.ones(2), 1)
            recorder.step()
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    summary = recorder.summary()
    added = to_trace_events(
        pid=os.getpid(), base_ns=int(trace.get("baseTimeNanoseconds", 0)), clock=summary.clock, exceptions=summary
    )
    slices = [event for event in added if event["ph"] == "X"]
    assert len(slices) == 2
    operators = [event["ts"] for event in trace["traceEvents"] if event.get("name") == "aten::add"]
    assert len(operators) == 2
    assert slices[0]["ts"] - 20 <= operators[0] <= slices[1]["ts"] + 20
