"""The diagnosis of a simulated script names its bug, says what fixing it wins, and is silent once it is fixed.

The truth comes from a simulator that knows nothing of torchdiag: the step time of the script without the bug.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from judged_pairs import TOLD, Judged, diagnosed, expected_ns, judged
from simulator.good_programs import cold_start, healthy, latent
from simulator.simulated_pairs import pairs
from simulator.simulated_program import Program, Simulated

from torchdiag.findings.finding import Diagnosis

NEAR = 0.1
WIDER = {
    "fp32-matmul-no-tf32": (0.2, "how much faster TF32 is can only be assumed: 2.5 times, and 3 times is the truth"),
}
"""Predictions that rest on something that a trace cannot show, how far off they may be, and why."""
ON_THE_HOST = (
    "attr-miss-exception",
    "dataloader-in-process",
    "dataloader-wait",
    "deepcopy-in-loop",
    "host-preprocess-main-thread",
    "module-tree-walk",
    "python-gc-pause",
    "recompile-steady-state",
    "sdpa-plan-rebuild",
    "sync-explicit-device",
    "warning-logging-hot-path",
)
"""Bugs that take no time of the device."""

PAIRS = {pair.rule: pair for pair in pairs()}
LATENT = {pair.rule: pair for pair in latent()}
HEALTHY = {program.name: program for program in healthy()}
each_pair = pytest.mark.parametrize("rule", PAIRS)
each_latent = pytest.mark.parametrize("rule", LATENT)
each_healthy = pytest.mark.parametrize("name", HEALTHY)


@cache
def verdict(rule: str) -> Judged:
    with TemporaryDirectory() as folder:
        return judged(PAIRS[rule], Path(folder))


@cache
def said(program: Program) -> tuple[Diagnosis, Simulated]:
    with TemporaryDirectory() as folder:
        return diagnosed(program, Path(folder))


@each_pair
def test_the_bug_is_the_first_finding(rule: str) -> None:
    assert verdict(rule).top == rule


@each_pair
def test_nothing_is_said_of_a_bug_that_is_fixed(rule: str) -> None:
    assert verdict(rule).lingering == ()


@each_pair
def test_the_fixed_step_takes_as_long_as_predicted(rule: str) -> None:
    tolerance, _ = WIDER.get(rule, (NEAR, ""))
    assert verdict(rule).error == pytest.approx(0, abs=tolerance)


def test_most_predictions_are_much_nearer() -> None:
    errors = sorted(abs(verdict(rule).error) for rule in PAIRS)
    assert errors[len(errors) // 2] < 0.03
    assert set(WIDER) <= {rule for rule in PAIRS if abs(verdict(rule).error) > NEAR}


@each_pair
def test_no_finding_wins_more_than_it_is_accused_of(rule: str) -> None:
    summary = verdict(rule).slow.summary
    for finding in verdict(rule).slow.findings:
        if finding.gain is not None:
            assert 0 <= finding.gain.low_ns <= finding.gain.expected_ns <= finding.gain.high_ns
            assert finding.gain.expected_ns <= finding.accused_ns + 1
            assert finding.gain.expected_ns < summary.step_ns


@pytest.mark.parametrize("rule", ON_THE_HOST)
def test_a_bug_on_the_host_costs_no_more_than_the_device_idles(rule: str) -> None:
    summary = verdict(rule).slow.summary
    assert summary.gpu_busy is not None
    idle_ns = (1 - summary.gpu_busy) * summary.step_ns
    mine = [finding for finding in verdict(rule).slow.findings if finding.rule == rule]
    assert mine
    assert sum(expected_ns(finding) for finding in mine) <= idle_ns + 1


@each_healthy
def test_a_healthy_script_is_not_accused(name: str) -> None:
    found, _ = said(HEALTHY[name])
    assert [one for one in found.findings if one.verdict == "exposed" and one.gain_share >= 0.02] == []
    assert found.summary.bound_by == "gpu"


@each_healthy
def test_a_step_takes_as_long_as_the_device_works_for_it(name: str) -> None:
    found, truth = said(HEALTHY[name])
    assert found.summary.step_ns == pytest.approx(truth.steady_ns, rel=0.02)


@each_latent
def test_a_bug_that_costs_nothing_is_not_said_to_cost_time(rule: str) -> None:
    found, _ = said(LATENT[rule].slow)
    assert [one.rule for one in found.findings if one.verdict == "exposed"] == []
    assert {one.verdict for one in found.findings if one.rule == rule} <= {"latent", "no-gain"}


def test_hidden_bugs_are_named_as_such() -> None:
    named = {rule for rule in LATENT if any(one.rule == rule for one in said(LATENT[rule].slow)[0].findings)}
    assert named >= {"sync-item-scalar", "h2d-pageable", "module-tree-walk"}


def test_a_cold_start_is_called_that_and_accused_of_nothing() -> None:
    found, _ = said(cold_start())
    assert found.summary.bound_by == "warm-up"
    assert [one for one in found.findings if one.verdict in TOLD] == []
