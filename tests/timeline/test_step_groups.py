"""Steps that differ are shown as such."""

from torchdiag.timeline.result import Step
from torchdiag.timeline.step_groups import grouped


def step(length=100, kernels=1000, launches=1000, syncs=2, copies=4, number=0):
    return Step(f"ProfilerStep#{number}", 0, length, 0.5, kernels, launches, syncs, copies, 0)


def seen(*steps):
    return [(item.group, item.note) for item in grouped(list(steps))]


def test_steps_alike_are_one_group_without_notes():
    assert seen(step(), step(110), step(95, kernels=1010)) == [("a", "")] * 3


def test_a_slow_first_step_is_told():
    assert seen(step(310), step(), step(), step()) == [("b", "first, 3.1x longer"), ("a", ""), ("a", ""), ("a", "")]


def test_a_step_that_logs_is_told_by_its_counts():
    found = seen(step(), step(), step(120, syncs=5, copies=8), step(), step(syncs=3))
    assert found[2] == ("b", "1.2x longer, +3 syncs, +4 copies")
    assert found[4] == ("c", "+1 sync")


def test_steps_that_differ_alike_are_one_group():
    found = seen(step(), step(400, kernels=3000), step(), step(420, kernels=3010), step())
    assert [group for group, _ in found] == ["a", "b", "a", "b", "a"]
    assert found[1][1] == "4.0x longer, +2000 kernels"


def test_fewer_is_told_too():
    assert seen(step(), step(), step(50, kernels=400, launches=400), step())[2] == (
        "b",
        "2.0x shorter, -600 kernels, -600 launches",
    )


def test_a_cut_first_or_last_step_is_partial():
    found = seen(step(40, kernels=300), step(), step(), step(60, kernels=700))
    assert [note.split(",")[0] for _, note in found] == ["partial", "", "", "partial"]


def test_of_two_different_steps_the_later_is_usual():
    assert seen(step(300), step()) == [("b", "first, 3.0x longer"), ("a", "")]


def test_few_calls_must_be_equal():
    assert [group for group, _ in seen(step(kernels=10), step(kernels=10), step(kernels=11))] == ["a", "a", "b"]


def test_no_steps():
    assert grouped([]) == ()


def test_many_different_steps_have_different_letters():
    found = grouped([step(kernels=1000 * 2**number) for number in range(30)])
    groups = [item.group for item in found]
    assert len(set(groups)) == 30
    assert {"a", "z", "aa", "ad"} <= set(groups)
