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
STILL_WRONG: dict[str, str] = {}


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
