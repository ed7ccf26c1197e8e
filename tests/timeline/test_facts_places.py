"""Where in a person's program something happens, and the few places that matter."""

import numpy as np
from hand import trace
from written import Event, call, frame, kernel, mark, operator

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.few_places import PLACES, few_places
from torchdiag.timeline.facts.gpu import Gpu, gpu
from torchdiag.timeline.facts.kernels import kernels
from torchdiag.timeline.facts.whereabouts import Where, whereabouts

STEP = 100_000


def where(row: int, *events: Event) -> Where:
    return Facts.of(trace(*events)).get(whereabouts).of(np.array([row]))[0]


def test_a_call_is_at_the_innermost_line_of_a_person_in_the_outermost_operator_and_the_innermost_module():
    found = where(
        5,
        frame(0, 100, "train.py(88): step"),
        frame(5, 90, "nn.Module: Net_0"),
        frame(10, 80, "nn.Module: Linear_3"),
        operator(20, 50, "aten::linear"),
        operator(25, 40, "aten::addmm"),
        call(30, 10, 1),
    )
    assert found == Where("train.py", 88, "step", "aten::linear", "Linear_3")
    assert found.label == "train.py:88 step"


def test_frames_of_libraries_are_not_a_persons():
    found = where(
        2,
        frame(0, 100, "train.py(88): step"),
        frame(5, 90, "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py(1751): _call_impl"),
        operator(20, 50, "aten::linear"),
    )
    assert (found.file, found.line) == ("train.py", 88)


def test_the_line_that_runs_is_told_by_what_it_calls():
    found = where(
        2,
        frame(0, 100, "train.py(88): step"),
        frame(10, 80, "/usr/lib/python3.11/site-packages/torch/functional.py(9): norm", called_from="train.py:95"),
        operator(20, 50, "aten::norm"),
    )
    assert (found.file, found.line, found.function) == ("train.py", 95, "step")


def test_without_frames_the_operator_stands_for_the_place():
    assert where(0, operator(0, 10, "aten::mm")).label == "aten::mm"
    assert where(0, call(0, 10, 1)) == Where() and Where().label == ""
    assert Where(module="Net_0").label == "Net_0"


def test_places_are_grouped_the_most_frequent_first():
    events = [
        item for n in range(5) for item in (frame(100 * n, 90, f"m.py({n % 2 + 1}): f"), operator(100 * n + 9, 9))
    ]
    found = Facts.of(trace(*events)).get(whereabouts)
    rows = np.array([1, 3, 5, 7, 9])
    assert [(place.line, chosen.tolist()) for place, chosen in found.grouped(rows)] == [(1, [1, 5, 9]), (2, [3, 7])]
    assert found.most(rows).line == 1 and found.most(rows[:0]) == Where() and found.grouped(rows[:0]) == []


def lines(*counts: int, steps: int = 2) -> tuple[Facts, np.ndarray]:
    """Operators at lines 1, 2, ..., so many times in each step."""
    events: list[Event] = []
    for number in range(steps):
        at = number * STEP
        events.append(mark(number, at, STEP))
        for line, count in enumerate(counts, 1):
            for _ in range(count):
                at += 100
                events += [frame(at, 90, f"m.py({line}): f"), operator(at + 10, 50, "aten::item")]
    known = Facts.of(trace(*events))
    names = known.trace.names
    return known, np.flatnonzero([names[code] == "aten::item" for code in known.trace.name])


def test_up_to_five_places_are_told_apart_the_most_frequent_first():
    known, rows = lines(1, 3, 2)
    found = list(few_places(known, rows))
    assert [(place.where.line, place.often, place.others) for place in found] == [(2, 3, 0), (3, 2, 0), (1, 1, 0)]
    assert found[0].how_often == "3 times a step" and found[2].how_often == "once a step"
    assert found[0].at == " at m.py:2 f"
    assert rows[found[1].chosen].tolist() == rows[[4, 5, 10, 11]].tolist()


def test_the_rest_is_one_place_and_nothing_is_lost():
    known, rows = lines(*range(1, 9))
    found = list(few_places(known, rows))
    assert len(found) == PLACES and found[-1].others == 4 and found[-1].at == " at 4 more places"
    assert sorted(np.concatenate([place.chosen for place in found]).tolist()) == list(range(len(rows)))
    assert found[-1].where == Where()


def test_places_that_most_steps_do_not_come_by_are_left_out_unless_asked_for():
    known, rows = lines(2, steps=5)
    once = rows[:2]
    assert list(few_places(known, once)) == []
    (found,) = few_places(known, once, in_most=False)
    assert found.how_often == "0.4 times a step"
    assert list(few_places(known, rows[:0])) == []


def test_a_trace_without_steps_counts_in_the_whole():
    known = Facts.of(trace(frame(0, 90, "m.py(1): f"), operator(10, 9), operator(30, 9)))
    (found,) = few_places(known, np.array([1, 2]))
    assert found.how_often == "2 times in the trace"


def test_kernels_know_the_innermost_operator_that_launched_them():
    events = [
        mark(0, 0, STEP),
        operator(10, 1000, "aten::linear"),
        operator(20, 900, "aten::addmm"),
        call(30, 10, 1),
        kernel(200, 50, 1),
        call(2000, 10, 2, name="cudaMemsetAsync"),
        kernel(3000, 50, 3, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
        call(2500, 10, 3),
    ]
    found = Facts.of(trace(*events)).get(kernels)
    assert (found.row.tolist(), found.call.tolist(), found.operator.tolist()) == ([4, 6], [3, 7], [2, -1])
    assert found.dur_ns.tolist() == [50, 50] and found.named(lambda name: "nccl" in name).tolist() == [False, True]
    assert found.compute().row.tolist() == [4]


def test_what_a_trace_says_about_its_device():
    def told(*devices: object) -> Gpu:
        return Facts.of(trace(deviceProperties=list(devices))).get(gpu)

    a100 = told({"name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0})
    assert a100.capability == (8, 0) and a100.tf32 and a100.datacenter
    rtx = told({"name": "NVIDIA GeForce RTX 3060", "computeMajor": 8, "computeMinor": 6})
    assert rtx.tf32 and not rtx.datacenter
    volta = told({"name": "Tesla V100-SXM2-16GB", "computeMajor": 7, "computeMinor": 0})
    assert not volta.tf32
    amd = told({"name": "AMD Instinct MI300X", "computeMajor": 9, "computeMinor": 4})
    assert amd.capability is None and not amd.tf32 and amd.name == "AMD Instinct MI300X"
    for nonsense in ([], ["text"], [{"name": 7, "computeMajor": "8"}], [None]):
        assert told(*nonsense) == Gpu("", None)
    assert Facts.of(trace(deviceProperties="text")).get(gpu) == Gpu("", None)
    assert Facts.of(trace()).get(gpu) == Gpu("", None)
