"""From backward operators to the forward operators behind them."""

import numpy as np
from reference.reader import trace_of
from written import arrow, operator, parsed

from torchdiag.timeline.forward import backward_operators, forward_of


def with_number(event, number, thread=0):
    event["args"] = {"Sequence number": number, "Fwd thread id": thread}
    return event


def forward_names(events):
    """Name of the forward operator of each backward operator, in file order."""
    trace = trace_of(parsed(events), {})
    rows = forward_of(trace, backward_operators(trace)).tolist()
    return [trace.names[int(trace.name[row])] if row >= 0 else None for row in rows]


def test_backward_operators_carry_the_id_of_a_forward_thread():
    events = [
        with_number(operator(0, 5, "aten::mul"), 3),
        with_number(operator(90, 5, "MulBackward0", thread=2), 3, 1),
        operator(95, 5, "aten::mm", thread=2),
    ]
    assert backward_operators(trace_of(parsed(events), {})).tolist() == [1]


def test_the_sequence_number_leads_to_the_innermost_operator_that_carries_it():
    events = [
        with_number(operator(0, 9, "aten::batch_norm"), 7),
        with_number(operator(2, 6, "aten::native_batch_norm"), 7),
        with_number(operator(20, 5, "aten::relu"), 8),
        with_number(operator(90, 5, "ReluBackward0", thread=2), 8, 1),
        with_number(operator(95, 5, "NativeBatchNormBackward0", thread=2), 7, 1),
    ]
    assert forward_names(events) == ["aten::relu", "aten::native_batch_norm"]


def test_a_number_nobody_carries_leads_nowhere():
    events = [with_number(operator(0, 9, "aten::mul"), 7), with_number(operator(90, 5, "AddBackward0", thread=2), 8, 1)]
    assert forward_names(events) == [None]


def test_numbers_of_two_forward_threads_are_kept_apart():
    def pass_of(thread, shift, profiler_id):
        return [
            with_number(operator(shift, 5, f"aten::mul{thread}", thread=thread), 1),
            with_number(operator(shift + 10, 5, f"aten::add{thread}", thread=thread), 2 + thread),
            with_number(operator(shift + 90, 5, "MulBackward0", thread=9), 1, profiler_id),
            with_number(operator(shift + 95, 5, "AddBackward0", thread=9), 2 + thread, profiler_id),
        ]

    assert forward_names(pass_of(1, 0, 1) + pass_of(2, 1000, 2)) == [
        "aten::mul1",
        "aten::add1",
        "aten::mul2",
        "aten::add2",
    ]


def test_a_flow_decides_before_the_number_does():
    events = [
        with_number(operator(0, 9, "aten::mul"), 7),
        with_number(operator(20, 9, "aten::div"), 7),
        with_number(operator(90, 9, "autograd::engine::evaluate_function: MulBackward0", thread=2), 7, 1),
        with_number(operator(92, 5, "MulBackward0", thread=2), 7, 1),
        arrow("s", 4, 0, (100, 1), "fwdbwd"),
        arrow("f", 4, 92, (100, 2), "fwdbwd"),
    ]
    trace = trace_of(parsed(events), {})
    node = np.array([2])
    assert forward_of(trace, node).tolist() == [0]


def test_operators_that_make_no_node_are_no_answer():
    events = [
        with_number(operator(0, 9, "aten::detach_"), 7),
        with_number(operator(90, 5, "GraphBackward", thread=2), 7, 1),
    ]
    assert forward_names(events) == [None]


def test_a_forward_operator_does_not_come_after_its_backward_operator():
    events = [
        with_number(operator(90, 5, "MulBackward0", thread=2), 7, 1),
        with_number(operator(200, 9, "aten::mul"), 7),
    ]
    assert forward_names(events) == [None]
