"""The figures of a run of a suite, counted by hand from a trace written by hand."""

import msgspec
import runs
import written
from reference.reader import trace_of

from torchdiag import api
from torchdiag.suite.figures_of_run import figures


def events():
    """Two steps of 100 us. In each: `environment` at 10..30, with one at 20..40 over it, and three operators."""
    found = []
    for number in range(2):
        at = 100_000 * number
        found += [
            written.mark(number, at, 100_000),
            written.annotation(at + 10_000, 20_000, "environment"),
            written.annotation(at + 20_000, 20_000, "environment"),
            written.operator(at + 50_000, 10_000, "aten::linear"),
            written.operator(at + 51_000, 5_000, "aten::addmm"),
            written.operator(at + 70_000, 5_000, "my::custom"),
        ]
    # Outside of every step.
    return [*found, written.operator(300_000, 10_000, "aten::late")]


def test_steps_environment_and_operators(tmp_path):
    folder = runs.folder(tmp_path / "run", light=events())
    trace = api.load(folder)
    result = runs.result()
    found = figures(result, api.breakdown(folder), trace)
    assert found.step_ns == 100 * runs.MS
    assert found.samples_ns == tuple(ms * runs.MS for ms in (98, 99, 100, 101, 102))
    assert (found.steps_ns, found.environment_ns) == (200_000, 60_000)
    assert found.operators == {"aten::addmm": 2, "aten::linear": 2}
    assert found.counters.operators == (3, 3)
    assert found.counters.kernels == (0, 0)
    assert found.counters.exceptions == (1, 1, 1)
    assert found.counters.throws == (2, 2, 2)
    assert found.device is None
    assert found.host is not None
    # 10 + 5 of the operators that are innermost, of 100 us a step.
    assert found.host.operator_ns == 2 * (10_000 + 5_000)
    assert found.peak_rss_bytes == 800_000_000
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found


def test_without_a_trace_there_are_times_alone():
    found = figures(runs.result(), None, None)
    assert (found.step_ns, found.device, found.host, found.environment_ns) == (100 * runs.MS, None, None, None)
    assert found.counters.operators == ()


def test_a_model_without_an_environment_has_no_share_of_it():
    trace = trace_of([written.mark(0, 0, 1000), written.operator(0, 10, "aten::mm")], {})
    assert figures(runs.result(), None, trace).environment_ns is None
