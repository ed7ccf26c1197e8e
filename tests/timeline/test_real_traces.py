"""The partition of real traces: equal to the slow reference, and to what their makers published."""

import pytest
from reference import corpus
from reference.agreement import figures
from reference.events import activities_of, events_of
from reference.partition import partition

from torchdiag.errors import TorchdiagError
from torchdiag.timeline.analysis import analyse
from torchdiag.timeline.result import Cause
from torchdiag.trace.load import load

pytestmark = [corpus.needs_traces, pytest.mark.slow, pytest.mark.usefixtures("no_collection")]

RESNET = "kineto/resnet50_num_workers_{}__worker0{}.pt.trace.json.gz"
OWL = "tracelens/h100__google_owlv2-large-patch14-ensemble__1016001.json.gz"


@pytest.mark.parametrize("name", corpus.names())
def test_the_slow_reference_finds_the_same(name):
    events, _ = corpus.parsed_or_skip(name)
    if not events_of(events):
        with pytest.raises(TorchdiagError):
            analyse(load(corpus.path_of(name)))
        return
    found = figures(analyse(load(corpus.path_of(name))))
    assert found == partition(events)
    for device in found.values():
        assert sum(device.headline.values()) == device.window[1] - device.window[0]
        assert sum(device.states.values()) == device.window[1] - device.window[0]
        assert sum(device.idle.values()) == device.states["idle"]


def only_device(name, **choice):
    (device,) = analyse(load(corpus.path_of(name)), **choice).devices
    return device


def cause_share(device, cause):
    """Share of the window that a device idled for one cause."""
    return next(found.idle_ns for found in device.causes if found.cause is cause) / device.window.length_ns


def test_without_loader_workers_a_fifth_of_the_window_waits_for_data():
    """As the TensorBoard plugin's tutorial says of this run."""
    assert 0.17 < cause_share(only_device(RESNET.format(0, "")), Cause.DATALOADER) < 0.23


@pytest.mark.parametrize("run", [".1623143089861", ".1623143566756"])
def test_other_runs_without_loader_workers_wait_as_long_or_longer(run):
    assert cause_share(only_device(RESNET.format(0, run)), Cause.DATALOADER) > 0.2


@pytest.mark.parametrize("run", ["", ".1623212756351", ".1623213129365"])
def test_four_loader_workers_leave_almost_nothing_to_wait_for(run):
    assert cause_share(only_device(RESNET.format(4, run)), Cause.DATALOADER) < 0.01


def test_owlv2_idles_while_its_loader_prepares_images():
    device = only_device(OWL)
    loader = next(cause for cause in device.causes if cause.cause is Cause.DATALOADER)
    assert loader.idle_ns > 0.9 * device.states.idle
    resize, normalise = loader.places[:2]
    assert (resize.file, resize.function) == ("scipy/ndimage/_interpolation.py", "zoom")
    assert (normalise.file, normalise.function) == ("transformers/image_transforms.py", "normalize")
    assert resize.idle_ns + normalise.idle_ns > 0.9 * device.states.idle


@pytest.mark.parametrize(
    ("name", "idle_percent"),
    [
        ("hta/ns_resolution_trace__rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 1.578),
        ("hta/trace_diff__control__control.json.gz", 16.36),
        ("hta/nccl_parser_config__nccl_data.json.gz", 76.156),
        ("tracelens/h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", 8.067),
        (OWL, 47.439),
        ("tracelens/b200__eager_trace.json.gz", 86.274),
        ("tracelens/inference__vllm_prefilldecode_piecewise__graph_execution.json.gz", 0.243),
    ],
)
def test_idle_share_from_the_first_to_the_last_activity(name, idle_percent):
    """Figures that were found with exact arithmetic before this program existed."""
    events, _ = corpus.parsed_or_skip(name)
    activities = activities_of(events_of(events))
    start, end = min(item.start for item in activities), max(item.end for item in activities)
    device = only_device(name, window=f"{start}:{end}")
    decimals = len(str(idle_percent).split(".")[1])
    assert round(100 * device.states.idle / device.window.length_ns, decimals) == idle_percent
