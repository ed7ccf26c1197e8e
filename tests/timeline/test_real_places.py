"""Places, steps and health of real traces: what their makers published, or what one reads in them."""

import json
import re

import pytest
from reference import corpus

from torchdiag.timeline.analysis import analyse
from torchdiag.timeline.result import Cause
from torchdiag.trace.load import load

pytestmark = [corpus.needs_traces, pytest.mark.slow]

OWL = "tracelens/h100__google_owlv2-large-patch14-ensemble__1016001.json.gz"
DDP = "tracelens/mi300__ddp_resnet18_no_pool__train_resnet18.json.gz"
QWEN = "tracelens/h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
OLD_STACKS = "kineto/resnet50_num_workers_0__worker0.1623143089861.pt.trace.json.gz"
OLD = "kineto/resnet50_num_workers_0__worker0.pt.trace.json.gz"
UNMARKED = "kineto/resnet50_autograd_api_num_workers_{}__worker0.pt.trace.json.gz"


def broken_down(name, top=None):
    return analyse(load(corpus.path_of(name)), top=top)


def places_of(breakdown, cause):
    return next(item for item in breakdown.devices[0].causes if item.cause is cause).places


def codes(breakdown):
    return {note.code: note for note in breakdown.trace.quality}


@pytest.fixture(scope="module")
def owl():
    return broken_down(OWL)


def test_owlv2_waits_for_image_preprocessing_in_its_loader(owl):
    places = places_of(owl, Cause.DATALOADER)
    idle = owl.devices[0].states.idle
    # The two heaviest: resizing with scipy and normalising, both of transformers' image processor.
    assert [place.label for place in places[:2]] == ["_interpolation.py:739 zoom", "image_transforms.py:390 normalize"]
    assert places[0].idle_ns + places[1].idle_ns > 0.85 * idle


def test_owlv2_pays_for_scalars_in_its_postprocessing(owl):
    found = {place.label for place in places_of(owl, Cause.SYNC)}
    assert "aten::to at base.py:1173 _ensure_tensor_on_device" in found
    assert all(place.line for place in places_of(owl, Cause.SYNC))


def test_no_place_of_a_trace_with_stacks_is_in_torch(owl):
    for cause in owl.devices[0].causes:
        assert not [place for place in cause.places if place.file and place.file.startswith("torch/")]


def test_ddp_backward_leads_to_the_models_lines():
    breakdown = broken_down(DDP)
    backward = [place for place in places_of(breakdown, Cause.FRAMEWORK) if place.label.startswith("backward of ")]
    assert {"backward of aten::conv2d at resnet.py:89 forward"} <= {place.label for place in backward}
    assert breakdown.steps_source == "period"
    assert [step.kernels for step in breakdown.steps] == [472] * 5


def test_qwen_reads_a_mask_back():
    found = {place.label for place in places_of(broken_down(QWEN), Cause.COPY_CALL)}
    assert "aten::is_nonzero at modeling_attn_mask_utils.py:243 _ignore_causal_mask_sdpa" in found


def test_old_call_stacks_give_lines():
    breakdown = broken_down(OLD_STACKS)
    assert "no-stacks" not in codes(breakdown)
    loading = places_of(breakdown, Cause.DATALOADER)
    assert {"functional.py:138 to_tensor", "functional.py:136 to_tensor"} <= {place.label for place in loading}
    labels = {place.label for place in places_of(breakdown, Cause.FRAMEWORK)}
    assert "aten::zero_ at resnet50_profiler_api.py:49 <module>" in labels


def test_a_trace_without_stacks_is_told_by_operators_and_annotations():
    breakdown = broken_down(OLD)
    assert "no-stacks" in codes(breakdown)
    labels = {place.label for place in places_of(breakdown, Cause.FRAMEWORK)}
    assert "aten::zero_ in Optimizer.zero_grad#SGD.zero_grad" in labels
    # 708 kernels of the first step were launched before the recording began.
    assert breakdown.steps[0].kernels == breakdown.steps[1].kernels + 708
    assert breakdown.steps[0].note == "first, +708 kernels"
    assert codes(breakdown)["unlinked-gpu-work"].count == 733


@pytest.mark.parametrize("workers", [0, 4])
def test_an_unmarked_training_loop_has_its_six_iterations(workers):
    breakdown = broken_down(UNMARKED.format(workers))
    assert breakdown.steps_source == "period"
    assert len(breakdown.steps) == 6


@pytest.mark.parametrize(
    "name",
    [
        "hta/critical_path__alexnet__benchmark_result_2869224_1695835535_trace.json.gz",
        "tracelens/torch_compile_triton__trace.json.gz",
        "tracelens/inference__vllm_decode_full__graph_execution.json.gz",
        "gpupuzzlers/d2h_sync__addition_first_sum.json.gz",
    ],
)
def test_what_does_not_repeat_has_no_period(name):
    breakdown = broken_down(name)
    assert (breakdown.steps, breakdown.steps_source) == ((), "none")


def test_the_benchmark_of_thirty_iterations_has_thirty_periods():
    breakdown = broken_down("param/et_replay__tests__inputs__resnet_kineto.json.gz")
    assert len(breakdown.steps) == 30


def test_a_counter_session_is_named_as_the_reason_for_missing_kernels():
    name = "hta/cupti_profiler__benchmark_result_924719_1679055439_trace.json.gz"
    assert "profiler_metrics" in codes(broken_down(name))["gpu-not-recorded"].message


@pytest.mark.parametrize("name", corpus.names() if corpus.FOLDER.is_dir() else [])
def test_places_hold_all_idle_time_and_words_are_clean(name):
    if "malformed" in name:
        pytest.skip("damaged on purpose")
    breakdown = broken_down(name) if has_events(name) else pytest.skip("no events")
    for device in breakdown.devices:
        assert [cause.cause for cause in device.causes] == list(Cause)
        assert sum(cause.idle_ns for cause in device.causes) == device.states.idle
        for cause in device.causes:
            assert cause.idle_ns == sum(place.idle_ns for place in cause.places)
            assert list(cause.places) == sorted(
                cause.places, key=lambda place: (-place.idle_ns, place.label, place.file or "")
            )
            assert not [place.label for place in cause.places if re.search(r"0x[0-9a-f]{6}", place.label)]
    if breakdown.host is not None:
        host = breakdown.host
        figures = (host.operator_ns, host.runtime_ns, host.python_ns, host.dataloader_ns, host.uncovered_ns)
        assert sum(figures) == host.window.length_ns
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", note.code) and note.count > 0 for note in breakdown.trace.quality)
    json.dumps([note.to_dict() for note in breakdown.trace.quality])


def has_events(name):
    trace = load(corpus.path_of(name))
    return bool((trace.kind != 0).any())
