"""Copies between host and device, and the calls that wait for the device."""

import numpy as np
import pytest
from hand import trace
from written import Event, call, event, kernel, mark, operator

from torchdiag.timeline.facts.blocking import blocking
from torchdiag.timeline.facts.copies import PAGEABLE, PINNED, TO_DEVICE, TO_HOST, UNTOLD, Copies, copies
from torchdiag.timeline.facts.facts import Facts

MOVE = "cudaMemcpyAsync"
SYNC = "cudaStreamSynchronize"


def moved(
    at: int, correlation: int, name: str = "Memcpy DtoH (Device -> Pageable)", *, api: str = MOVE, size: int | None = 4,
    took: int = 5, **more: object,
) -> list[Event]:  # fmt: skip
    args = {"device": 0, "stream": 7, "correlation": correlation, **more}
    args |= {} if size is None else {"bytes": size}
    return [call(at, took, correlation, name=api), event("gpu_memcpy", name, at + 3, 2, (0, 7), args)]


def facts(*events: Event) -> Facts:
    return Facts.of(trace(mark(1, 0, 1000), *events, call(900, 5, 99), kernel(950, 10, 99)))


def copied(*events: Event) -> Copies:
    return facts(*events).get(copies)


@pytest.mark.parametrize(
    ("name", "more", "direction", "memory"),
    [
        ("Memcpy DtoH (Device -> Pageable)", {}, TO_HOST, PAGEABLE),
        ("Memcpy DtoH (Device -> Pinned)", {}, TO_HOST, PINNED),
        ("Memcpy HtoD (Pageable -> Device)", {}, TO_DEVICE, PAGEABLE),
        ("Memcpy HtoD (Pinned -> Device)", {}, TO_DEVICE, PINNED),
        ("Memcpy DtoH (Device -> Host)", {}, TO_HOST, UNTOLD),
        ("Memcpy HtoD (Host -> Device)", {}, TO_DEVICE, UNTOLD),
        ("CopyHostToDevice", {}, TO_DEVICE, UNTOLD),
        ("CopyDeviceToHost", {}, TO_HOST, UNTOLD),
        ("Memcpy M2D", {}, TO_DEVICE, UNTOLD),
        ("DMA", {"direction": "Host->Device"}, TO_DEVICE, UNTOLD),
    ],
)
def test_names_and_arguments_tell_the_way_and_the_memory(name: str, more: dict, direction: int, memory: int):
    found = copied(*moved(100, 1, name, **more))
    assert (found.direction.tolist(), found.memory.tolist()) == ([direction], [memory])


@pytest.mark.parametrize("name", ["Memcpy DtoD (Device -> Device)", "Memcpy PtoP (Device -> Device)", "Memcpy"])
def test_copies_that_stay_on_devices_are_none_of_these(name: str):
    assert len(copied(*moved(100, 1, name))) == 0


def test_a_copy_knows_its_call_its_operator_and_its_size():
    found = copied(operator(90, 40, "aten::copy_"), *moved(100, 1, size=800), *moved(200, 2, size=None))
    assert found.call.tolist() == [2, 4] and found.operator.tolist() == [1, -1]
    assert found.size_bytes.tolist() == [800, -1] and found.step.tolist() == [0, 0]
    assert found.part(np.array([1])).row.tolist() == [5]


def test_a_synchronisation_after_the_copy_in_the_same_operator_waits_for_it():
    found = copied(operator(90, 100, "aten::item"), *moved(100, 1), call(110, 50, 0, name=SYNC))
    assert found.sync.tolist() == [4] and found.blocks.tolist() == [True]


@pytest.mark.parametrize(
    ("events", "sync", "blocks"),
    [
        pytest.param([operator(90, 15), *moved(100, 1), call(110, 9, 0, name=SYNC)], -1, True, id="pageable"),
        pytest.param(
            [operator(90, 15), *moved(100, 1, "Memcpy HtoD (Pinned -> Device)"), call(110, 9, 0, name=SYNC)], -1, False,
            id="a synchronisation of another operator",
        ),
        pytest.param(
            [operator(80, 50), call(85, 9, 0, name=SYNC), *moved(100, 1, "Memcpy HtoD (Pinned -> Device)")], -1, False,
            id="a synchronisation before the copy",
        ),
        pytest.param(
            [operator(90, 50), *moved(100, 1, "Memcpy DtoH (Device -> Pinned)"), call(110, 9, 0, name=SYNC)], 4, True,
            id="pinned, and waited for",
        ),
        pytest.param(
            [operator(90, 50), *moved(100, 1, "Memcpy DtoH (Device -> Host)", api="hipMemcpyWithStream")], 2, True,
            id="a call of ROCm that copies and waits",
        ),
        pytest.param(
            [operator(90, 50), *moved(100, 1, "Memcpy HtoD (Host -> Device)", api="hipMemcpyAsync")], -1, False,
            id="a call of ROCm that does not wait",
        ),
    ],
)  # fmt: skip
def test_what_a_copy_is_waited_for_by(events: list[Event], sync: int, blocks: bool):
    found = copied(*events)
    assert (found.sync.tolist(), found.blocks.tolist()) == ([sync], [blocks])


def test_of_two_copies_in_one_operator_each_is_waited_for_by_the_next_synchronisation():
    found = copied(
        operator(90, 200), *moved(100, 1), call(110, 9, 0, name=SYNC), *moved(150, 2), call(160, 9, 0, name=SYNC)
    )
    assert found.sync.tolist() == [4, 7]


def test_a_copy_and_its_synchronisation_are_one_wait_of_the_time_of_both():
    known = facts(operator(90, 100, "aten::item"), *moved(100, 1, took=7), call(110, 50, 0, name=SYNC))
    waits = known.get(blocking)
    assert (waits.row.tolist(), waits.with_copy.tolist(), waits.waited_ns.tolist()) == ([4], [2], [57])
    assert waits.calls.tolist() == [2, 4] and waits.operator.tolist() == [1] and waits.copy.tolist() == [0]
    assert waits.inside(known, np.array([1])).tolist() == [True]


def test_bare_synchronisations_and_pageable_copies_alone_are_waits_too():
    waits = facts(*moved(100, 1, took=30), call(200, 50, 0, name="cudaDeviceSynchronize")).get(blocking)
    assert waits.row.tolist() == [1, 3] and waits.waited_ns.tolist() == [30, 50]
    assert waits.copy.tolist() == [0, -1] and waits.operator.tolist() == [-1, -1]


def test_waits_outside_of_steps_are_the_profilers_own():
    outside = call(1500, 50, 0, name="cudaDeviceSynchronize")
    assert len(facts(outside).get(blocking)) == 0
    assert len(facts().get(blocking)) == 0
