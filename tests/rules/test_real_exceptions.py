"""What exceptions cost a step is predicted from the folder of a run, within bounds, and is what their removal wins."""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

from torchdiag.capture import parent
from torchdiag.diagnosis.gains import Charge, weigh
from torchdiag.diagnosis.of_run import diagnose_run
from torchdiag.history import run_folder
from torchdiag.history.profile_options import ProfileOptions
from torchdiag.rules.exception_slow_path import RULE
from torchdiag.timeline.facts.facts import Facts
from torchdiag.trace.load import load

TOLERANCE = 0.15
"""Of the step: operators take longer while they are recorded, exceptions of C++ do not; machines are shared."""
ATTEMPTS = 3
CALM = 12
"""So many of the recorded steps are taken to be undisturbed."""
STEPS = Path(__file__).parent / "raising_steps.py"
FIXED = {"c10::Error": "without_cpp", "KeyError": "without_python"}
"""Types of exceptions, and the step without them."""


def measured_ns() -> dict[str, int]:
    """The shortest CPU times, from a process like that of the run: an exception walks the stack of its process."""
    answer = subprocess.run([sys.executable, STEPS], capture_output=True, text=True, check=True, timeout=300)
    return json.loads(answer.stdout)


def recorded(folder: Path) -> tuple[Facts, run_folder.RunFolder]:
    """The light recording of a run of the step."""
    options = ProfileOptions(
        target=f"{STEPS.stem}:step",
        target_kind="function",
        warmup=3,
        steps=5,
        light_steps=80,
        detailed_steps=1,
        stack=False,
    )
    parent.run(options, folder, on_event=print)
    run = run_folder.read(folder)
    assert run.trace is not None
    return Facts.of(load(run.trace), run), run


def predicted_ns(facts: Facts) -> dict[str, tuple[float, float, float]]:
    """For each type of exception the least, the expected and the greatest gain, the smallest of calm steps.

    Other programs of the machine make them greater, and nothing makes them smaller.
    """
    found: dict[str, tuple[float, float, float]] = {}
    for step in sorted(facts.steps[2:], key=lambda one: one.end_ns - one.start_ns)[:CALM]:
        alone = Facts(facts.trace, facts.partition, (replace(step, note=""),), "marks", facts.run)
        for one in weigh(alone, [Charge(RULE, suspect) for suspect in RULE.check(alone)]):
            name = next((name for name in FIXED if f"({name})" in one.charge.suspect.title), None)
            if name is not None and one.gain is not None:
                gain = (one.gain.low_ns, one.gain.expected_ns, one.gain.high_ns)
                low, expected, high = map(min, gain, found.get(name, gain))
                found[name] = (low, expected, high)
    return found


@pytest.mark.slow
def test_the_gain_of_exceptions_in_a_run_is_the_measured_one(tmp_path, monkeypatch, record_property):
    monkeypatch.chdir(STEPS.parent)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    wrong = ["never tried"]
    for attempt in range(ATTEMPTS):
        (tmp_path / str(attempt)).mkdir()
        facts, run = recorded(tmp_path / str(attempt))
        assert run.result.recorder is not None and run.result.recorder.throws
        wrong = []
        gains, times = predicted_ns(facts), measured_ns()
        assert set(gains) == set(FIXED)
        for name, gain_ns in gains.items():
            slow_ns = times["step"]
            measured = 1 - times[FIXED[name]] / slow_ns
            low, expected, high = (gain / slow_ns for gain in gain_ns)
            told = f"{name}: measured {measured:.0%}, predicted {low:.0%} / {expected:.0%} / {high:.0%}"
            print(told)
            record_property(name, told)
            near = low - TOLERANCE <= measured <= high + TOLERANCE and abs(expected - measured) <= 2 * TOLERANCE
            if not near and "TORCHDIAG_MEASURE" in os.environ:  # asks for a quiet machine
                wrong.append(told)
        for finding in diagnose_run(facts, run, [RULE]).findings:
            assert finding.gain is not None
            assert finding.gain.expected_ns <= finding.accused_ns * 1.001
        if not wrong:
            return
    pytest.fail("; ".join(wrong))
