"""What is said of two runs of a suite: times by the test and the effect, counts exactly."""

import pytest
import suite_outcomes as made
from suite_outcomes import case, figures, outcome

from torchdiag.suite.comparing import Verdict, compare
from torchdiag.suite.outcome import Counters


def folders(tmp_path, a, b):
    return made.folder(tmp_path / "a", a), made.folder(tmp_path / "b", b)


def runs(steps_ms, *, subject="resnet18", second=0, **changes):
    """One process for each of `steps_ms`, one every ten seconds from `second` on."""
    return [
        outcome(
            case(subject, process=number),
            began=f"2026-01-01T00:{(number * 10) // 60:02d}:{(number * 10) % 60 + second:02d}+00:00",
            figures=figures(steps, **changes),
        )
        for number, steps in enumerate(steps_ms, 1)
    ]


def only(tmp_path, a, b, **more):
    (change,) = compare(*folders(tmp_path, a, b), **more).changes
    return change


FIVE = [(10.0, 10.1, 10.2), (10.1, 10.2, 10.3), (10.0, 10.0, 10.1), (10.2, 10.1, 10.0), (10.1, 10.1, 10.1)]


def scaled(factor):
    return [tuple(step * factor for step in steps) for steps in FIVE]


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.2, Verdict.SLOWER), (0.8, Verdict.FASTER), (1.0, Verdict.SAME), (1.02, Verdict.SAME)]
)
def test_a_change_is_one_that_is_sure_and_large_enough(tmp_path, factor, verdict):
    change = only(tmp_path, runs(FIVE), runs(scaled(factor), second=5))
    assert change.verdict is verdict
    assert change.shift.ratio == pytest.approx(factor, rel=0.02)
    assert change.interleaved
    assert change.regressed == (verdict is Verdict.SLOWER)


def test_the_smallest_effect_is_the_users(tmp_path):
    b = scaled(1.025)
    assert only(tmp_path / "x", runs(FIVE), runs(b)).verdict is Verdict.SAME
    assert only(tmp_path / "y", runs(FIVE), runs(b), min_effect=0.02).verdict is Verdict.SLOWER


def test_three_processes_cannot_tell(tmp_path):
    change = only(tmp_path, runs(FIVE[:3]), runs(scaled(3)[:3]))
    assert change.verdict is Verdict.UNSURE
    assert change.shift.least_p == pytest.approx(0.1)
    assert not change.regressed


def test_one_slow_process_is_not_taken_for_many_slow_steps(tmp_path):
    # 100 slow steps of one process are one event, not a hundred.
    b = [*FIVE[:4], (30.0,) * 100]
    assert only(tmp_path, runs(FIVE), runs(b)).verdict is Verdict.SAME


def test_sides_that_did_not_take_turns_are_told(tmp_path):
    later = [outcome(one.case, began=one.began.replace("T00", "T09"), figures=one.figures) for one in runs(scaled(1.5))]
    change = only(tmp_path, runs(FIVE), later)
    assert (change.verdict, change.interleaved) == (Verdict.SLOWER, False)


@pytest.mark.parametrize(
    ("name", "before", "after", "worse"),
    [
        ("kernels", (10, 10), (11, 11), True),
        ("syncs", (3, 3), (2, 2), False),
        ("operators", (40, 40), (41, 41), True),
        # Counts that vary from step to step differ where their ranges are apart.
        ("exceptions", (0, 2), (3, 4), True),
        ("exceptions", (0, 2), (2, 4), None),
        ("copied_bytes", (1_000_000, 1_000_000), (1_000_001, 1_000_001), True),
        ("launches", (5, 5), (5, 5), None),
    ],
)
def test_counts_are_compared_exactly(tmp_path, name, before, after, worse):
    a = runs([(10,)], counters=Counters(**{name: before}))
    b = runs([(10,)], counters=Counters(**{name: after}))
    change = only(tmp_path, a, b)
    if worse is None:
        assert change.counts == ()
    else:
        (count,) = change.counts
        assert (count.name, count.a, count.b, count.worse) == (
            name,
            (min(before), max(before)),
            (min(after), max(after)),
            worse,
        )
    assert change.regressed == bool(worse)


def test_peak_memory_of_the_gpu_is_a_count(tmp_path):
    change = only(tmp_path, runs([(10,)]), runs([(10,)], gpu_peak_allocated_bytes=(1 << 20) + 512))
    assert [count.name for count in change.counts] == ["gpu_peak_allocated_bytes"]
    assert change.regressed


def test_what_broke_and_what_is_gone(tmp_path):
    failed = outcome(case(process=1), status="failed", kind="exception", message="It raised.", figures=None)
    found = compare(*folders(tmp_path, [*runs([(1,)]), *runs([(1,)], subject="dlrm")], [failed]))
    (change,) = found.changes
    assert (change.verdict, change.note) == (Verdict.BROKE, "It raised.")
    assert found.regressions == [change]
    assert found.only_in_a == ("dlrm-train-cuda-fp32",)
    back = compare(found_b := made.folder(tmp_path / "c", [failed]), made.folder(tmp_path / "d", runs([(1,)])))
    assert found_b.plan.suite == "mine"
    assert [one.verdict for one in back.changes] == [Verdict.MENDED]


def test_different_work_is_not_compared(tmp_path):
    change = only(tmp_path, runs(FIVE), runs(scaled(2), batch_size=8))
    assert (change.verdict, change.note, change.shift) == (Verdict.OTHER, "batch size 4 against 8", None)


def test_another_device_is_told(tmp_path):
    found = compare(*folders(tmp_path, runs([(1,)]), runs([(1,)], device_name="H100", torch="2.10.0")))
    assert found.differences == ("device: A100 in A, H100 in B", "torch: 2.9.0 in A, 2.10.0 in B")
