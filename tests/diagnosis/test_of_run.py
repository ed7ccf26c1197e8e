"""Findings of a run's two recordings become one list."""

from dataclasses import replace

import pytest

from torchdiag.diagnosis.of_run import merged
from torchdiag.findings.finding import Diagnosis, Finding, Gain, Summary
from torchdiag.timeline.facts.whereabouts import Where

MS = 1e6
NOWHERE = Where()


def finding(gain_ms: float, step_ms: float) -> Finding:
    return Finding(
        rule="some-rule",
        family="pause",
        verdict="exposed",
        severity="high",
        title="",
        where=NOWHERE,
        count_per_step=1,
        events=(0,),
        accused_ns=gain_ms * MS,
        idle_ns=0,
        gain=Gain(gain_ms * MS, gain_ms * MS, gain_ms * MS),
        gain_share=gain_ms / step_ms,
        group_gain_ns=None,
        confidence="high",
        reason="",
        fix="",
    )


def diagnosis(step_ms: float, *findings: Finding) -> Diagnosis:
    summary = Summary("host", step_ms * MS, None, 0, 0, None, 3, "")
    return Diagnosis("", None, "", summary, findings, (), ())


def test_what_the_light_recording_alone_shows_stays():
    alone = finding(2, 10)
    assert merged(diagnosis(10, alone), diagnosis(20)) == (alone,)


@pytest.mark.parametrize(("light_ms", "gain_ms"), [(10, 2), (20, 4), (100, 4)])
def test_what_the_detailed_recording_alone_shows_never_costs_more_than_it_did_there(light_ms, gain_ms):
    (found,) = merged(diagnosis(light_ms), diagnosis(20, finding(4, 20)))
    assert found.gain.expected_ns == pytest.approx(gain_ms * MS)
    assert found.accused_ns == pytest.approx(gain_ms * MS)
    assert found.gain_share == pytest.approx(gain_ms / light_ms)
    assert found.confidence == "medium"
    assert "detailed recording only" in found.reason


def test_what_both_show_has_the_gain_of_the_light_one_at_the_place_of_the_detailed_one():
    there = replace(finding(9, 20), where=Where(file="train.py", line=3))
    (found,) = merged(diagnosis(10, finding(2, 10)), diagnosis(20, there))
    assert found.gain.expected_ns == 2 * MS
    assert found.where.line == 3
