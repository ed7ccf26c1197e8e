"""The words for a place."""

import pytest

from torchdiag.timeline.frames import Frame
from torchdiag.timeline.place_label import Facts, kernel, label
from torchdiag.timeline.result import Cause

STEP = Frame("/me/train.py", 88, "step")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::copy<4, int>(int, float*)", "at::native::copy"),
        ("void at::native::(anonymous namespace)::softmax<float>(float*)", "at::native::softmax"),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD"),
        ("<unnamed>", "<unnamed>"),
    ],
)
def test_kernels_lose_their_arguments(name, short):
    assert kernel(name) == short


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (Facts(Cause.PYTHON, frame=STEP), "train.py:88 step"),
        (Facts(Cause.PYTHON, annotation="## forward ##"), "## forward ##"),
        (Facts(Cause.PYTHON, event="ProfilerStep#4"), "ProfilerStep"),
        (Facts(Cause.PYTHON), "no host event recorded"),
        (Facts(Cause.PYTHON, operator="aten::mul", frame=STEP, before=True), "before aten::mul at train.py:88 step"),
        (Facts(Cause.FRAMEWORK, operator="aten::mul", frame=STEP), "aten::mul at train.py:88 step"),
        (Facts(Cause.FRAMEWORK, operator="aten::mul", backward=True), "backward of aten::mul"),
        (Facts(Cause.FRAMEWORK, operator="autograd::engine::evaluate_function: MulBackward0"), "MulBackward0"),
        (Facts(Cause.SYNC, operator="aten::item", annotation="## forward ##"), "aten::item in ## forward ##"),
        (Facts(Cause.SYNC, event="cudaDeviceSynchronize"), "cudaDeviceSynchronize"),
        (Facts(Cause.QUEUED, kernel="void f<1>(int)", annotation="x#3"), "f in x"),
        (Facts(Cause.UNATTRIBUTED), "work without a launch call"),
        (Facts(Cause.UNKNOWN), "graph replay without its kernels"),
        (Facts(Cause.SYNC), "not recorded"),
    ],
)
def test_labels(facts, words):
    assert label(facts) == words
