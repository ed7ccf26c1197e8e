"""Diagnoses of real traces say what was written down before any rule existed, and claim nothing else.

What is still wrong is listed with its reason, and has to stay wrong until the entry goes: `strict` tells when it can.
"""

from functools import cache

import pytest
from real_verdicts import RealVerdict, load_verdicts
from reference import corpus
from scoring import Score, score

import torchdiag

TABLE = load_verdicts()
STILL_WRONG = {
    "hta/trace_diff__control__control.json.gz": "the family of waits claims what exposed communication would win",
    "hta/trace_diff__test__test.json.gz": "copies of a compiled backward pass are clones that look meant",
    "kineto/resnet50_num_workers_0__worker0.1623143089861.pt.trace.json.gz": "filling gradients wins 0.99 % of a step",
    "gpupuzzlers/fusion__fusion_mwe_trace.json.gz": "half of its idle time is of kernels whose launches are missing",
    "switch_transformers/trace.json.gz": "2.4 % of a step idles after its reads, though the device is mostly busy",
    "tracelens/h100__facebook_timesformer-base-finetuned-k400__1016002.json.gz": "its fetch wins 1.2 % of a step",
    "tracelens/mi300__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": "chains have a share just below the rule's threshold",
}


@cache
def scored(verdict: RealVerdict) -> Score:
    return score(verdict, torchdiag.diagnose(corpus.path_of(verdict.path)))


def name_of(verdict: RealVerdict) -> str:
    return verdict.path.removesuffix(".json.gz")


def cases() -> list[object]:
    return [
        pytest.param(
            verdict,
            id=name_of(verdict),
            marks=[pytest.mark.xfail(strict=True, reason=STILL_WRONG[verdict.path])]
            if verdict.path in STILL_WRONG
            else [],
        )
        for verdict in TABLE
    ]


@corpus.needs_traces
@pytest.mark.parametrize("verdict", cases())
def test_a_real_trace_gets_its_right_verdict(verdict: RealVerdict) -> None:
    found = scored(verdict)
    assert not found.wrong
    assert not found.missing
    assert not found.bound


@corpus.needs_traces
def test_what_is_said_is_right_more_often_than_what_is_right_is_said() -> None:
    found = [scored(verdict) for verdict in TABLE]
    right, wrong = sum(len(item.right) for item in found), sum(len(item.wrong) for item in found)
    demanded = sum(not told.endswith("(may)") for item in found for told in item.right)
    missing = sum(len(item.missing) for item in found)
    precision, recall = right / (right + wrong), demanded / (demanded + missing)
    assert precision >= 0.9
    assert recall >= 0.85
    assert precision >= recall
