"""The table of right verdicts keeps to the catalogue, to itself, and to the traces that are there."""

from collections import Counter

import pytest
from real_verdicts import BOUNDS, CATALOGUE, NEVER_FROM_ONE_FILE, VERDICTS, RealVerdict, load_verdicts, rules_of
from reference import corpus

TABLE = load_verdicts()
NOT_RECORDED = [verdict for verdict in TABLE if verdict.bound_by == ("cannot-tell",)]


def name_of(verdict: RealVerdict) -> str:
    return verdict.path.removesuffix(".json.gz")


each_trace = pytest.mark.parametrize("verdict", TABLE, ids=name_of)


def test_every_trace_has_one_verdict_and_there_are_enough_of_them():
    assert [path for path, count in Counter(verdict.path for verdict in TABLE).items() if count > 1] == []
    assert len(TABLE) >= 36
    assert {bound for verdict in TABLE for bound in verdict.bound_by} == set(BOUNDS)
    assert len(CATALOGUE) == 86


@corpus.needs_traces
@each_trace
def test_the_trace_is_there(verdict: RealVerdict):
    assert corpus.path_of(verdict.path).is_file()


@each_trace
def test_a_verdict_does_not_contradict_itself(verdict: RealVerdict):
    assert verdict.bound_by and set(verdict.bound_by) <= set(BOUNDS)
    assert any(letter.isdigit() for letter in verdict.reason)
    assert not verdict.may & (verdict.not_exposed | verdict.must_not)
    for demand in verdict.must:
        possible = set(demand.any)
        if VERDICTS.index(demand.at_least) >= VERDICTS.index("latent"):
            possible -= verdict.must_not
        if demand.at_least == "exposed":
            possible -= verdict.not_exposed
            assert not verdict.healthy
        if demand.at_most != "exposed":
            possible -= verdict.may
        assert possible, demand


@each_trace
def test_a_straggler_is_never_blamed_from_one_rank(verdict: RealVerdict):
    assert verdict.must_not >= NEVER_FROM_ONE_FILE
    assert not verdict.may & NEVER_FROM_ONE_FILE


@pytest.mark.parametrize("verdict", NOT_RECORDED, ids=name_of)
def test_where_gpu_work_was_not_recorded_nothing_is_demanded_of_the_gpu(verdict: RealVerdict):
    assert not verdict.must
    assert rules_of(["@gpu"]) <= verdict.must_not


def test_a_rule_that_the_catalogue_lacks_is_a_mistake():
    with pytest.raises(ValueError, match="no rule of the catalogue"):
        rules_of(["sync-typo"])
