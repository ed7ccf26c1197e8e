"""The replay of real traces: unchanged it is the measurement, changed it stays within what is possible."""

import time

import numpy as np
import pytest
from reference import corpus
from whatif import replay_of

from torchdiag.errors import TorchdiagError
from torchdiag.timeline import intervals
from torchdiag.timeline.changes import Change
from torchdiag.timeline.partition import partition
from torchdiag.trace.load import load
from torchdiag.trace.vocabulary import Call, Kind

pytestmark = corpus.needs_traces

HOST = (Kind.OPERATOR, Kind.PYTHON, Kind.ANNOTATION, Kind.RUNTIME, Kind.OVERHEAD)
LARGE = "hta/trace_diff__control__control.json.gz"


@pytest.mark.parametrize("name", corpus.names())
def test_unchanged_it_is_the_measurement_and_removals_only_shorten_it(name):
    try:
        trace = load(corpus.path_of(name))
    except TorchdiagError:
        pytest.skip("nothing can be read of it")
    replay = replay_of(trace)
    measured = replay.steps_measured_ns
    assert replay.steps_ns([]).tolist() == measured.tolist()
    assert int(replay.paces_ns([]).sum()) == int(measured.sum())
    host = Change(shortened=np.flatnonzero(np.isin(trace.kind, HOST)))
    waits = Change(unblocked=np.flatnonzero(trace.call == Call.SYNC))
    for change in (host, waits):
        changed = replay.steps_ns([change])
        assert np.all(np.cumsum(changed) <= np.cumsum(measured))
        assert int(replay.paces_ns([change]).sum()) == int(changed.sum())
        idle = replay.device_idle_ns([change])
        assert np.all((idle >= 0) & (idle <= changed.sum()))


@pytest.mark.parametrize(
    "name",
    [
        "torch_profile/trace_05.json.gz",
        "tracelens/inference__vllm_decode_full__graph_execution.json.gz",
        "particle_transformer/run1_chrome_traces__single_epoch_forward_pass_batch_size_256.json.gz",
    ],
)
def test_a_busy_device_does_not_gain_from_the_host_but_from_faster_kernels(name):
    trace = load(corpus.path_of(name))
    replay, found = replay_of(trace), partition(trace)
    measured = replay.steps_measured_ns.sum()
    host = Change(
        shortened=np.flatnonzero(np.isin(trace.kind, HOST)), unblocked=np.flatnonzero(trace.kind == Kind.RUNTIME)
    )
    assert replay.steps_ns([host]).sum() > 0.97 * measured
    assert replay.steps_ns([Change(scaled=found.activities.row, device_scale=0.5)]).sum() < 0.53 * measured


def test_a_device_that_starves_gains_from_the_host_but_not_from_faster_kernels():
    """A vision transformer of which the device does 15 %."""
    trace = load(corpus.path_of("tracelens/h100__Falconsai_nsfw_image_detection__1016002.json.gz"))
    replay, found = replay_of(trace), partition(trace)
    measured = replay.steps_measured_ns.sum()
    host = Change(shortened=np.flatnonzero(np.isin(trace.kind, HOST)), host_scale=0.5)
    assert replay.steps_ns([host]).sum() < 0.55 * measured
    assert replay.steps_ns([Change(scaled=found.activities.row, device_scale=0.5)]).sum() > 0.99 * measured


def test_what_is_left_takes_at_least_the_time_that_its_device_is_busy():
    trace = load(corpus.path_of("torch_profile/trace_04.json.gz"))
    replay, found = replay_of(trace), partition(trace)
    (device,) = found.devices
    here = device.activities
    start = np.clip(here.start_ns, device.window.start_ns, device.window.end_ns)
    end = np.clip(here.end_ns, device.window.start_ns, device.window.end_ns)
    host = Change(
        shortened=np.flatnonzero(np.isin(trace.kind, HOST)), unblocked=np.flatnonzero(trace.kind == Kind.RUNTIME)
    )
    assert replay.steps_ns([host]).sum() >= intervals.length(*intervals.union(start, end))


def test_a_what_if_of_a_hundred_thousand_events_is_a_matter_of_milliseconds():
    trace = load(corpus.path_of(LARGE))
    assert len(trace) > 100_000
    replay = replay_of(trace)
    change = Change(shortened=np.flatnonzero(np.isin(trace.kind, HOST)), host_scale=0.5)
    begun = time.process_time()
    replay.steps_ns([change])
    assert time.process_time() - begun < 0.3
