"""Rules about modes that were left on, and about recurrent layers: what they accuse and what they leave alone."""

from typing import Any

import numpy as np
import pytest
from kernel_steps import MS, US, Event, accused, change_of, names, only, op, other, runs, steps
from written import annotation, call, event, frame

from torchdiag.rules.anomaly_mode_on import RULE as ANOMALY
from torchdiag.rules.deterministic_fill import RULE as FILLS
from torchdiag.rules.deterministic_slow_kernels import RULE as DETERMINISTIC
from torchdiag.rules.rnn_unfused import RULE as RECURRENT
from torchdiag.rules.unused_gradient import RULE as UNUSED

NODE = "autograd::engine::evaluate_function: "
LINE = "model.py(12): forward"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >"
SORT = "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, long, int>::Policy800>"


def checked(node: str, at: int, correlation: int, *, checks: bool = True) -> list[Event]:
    """A node of the backward pass, and the check of its gradient as torch 2.14 records it."""
    name = node.rsplit("::", maxsplit=1)[-1]
    events = [op(at, 100 * US, NODE + node), *runs(at + US, correlation, name, {"k": 10 * US})]
    if not checks:
        return events
    read = correlation + 9
    wait = {"device": 0, "stream": 7, "correlation": read, "bytes": 1}
    return [
        *events,
        *runs(at + 25 * US, correlation + 1, "aten::isnan", {"ne": 2 * US}),
        op(at + 46 * US, 20 * US, "aten::_is_any_true"),
        op(at + 47 * US, 18 * US, "aten::any"),
        call(at + 48 * US, US, correlation + 2),
        op(at + 67 * US, 30 * US, "aten::item"),
        op(at + 68 * US, 28 * US, "aten::_local_scalar_dense"),
        call(at + 69 * US, 2 * US, read, name="cudaMemcpyAsync"),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", at + 75 * US, US, (0, 7), wait),
        call(at + 72 * US, 20 * US, 0, name="cudaStreamSynchronize"),
    ]


def backward(*nodes: tuple[str, bool]):
    def body(start: int, correlation: int) -> list[Event]:
        events = [frame(start + MS, 5 * US, "python3.11/traceback.py(229): format_stack")]
        for number, (node, checks) in enumerate(nodes):
            at = start + 2 * MS + number * 200 * US
            events += checked(node, at, correlation + 20 * number, checks=checks)
        return events

    return body


ACCUMULATE = ("torch::autograd::AccumulateGrad", False)


def test_checks_for_nan_in_the_backward_pass_are_accused_with_their_waits():
    facts = steps(backward(("AddmmBackward0", True), ("ReluBackward0", True), ACCUMULATE, ACCUMULATE, ACCUMULATE))
    suspect = only(ANOMALY, facts)
    assert suspect.title == "Anomaly detection is on: 2 gradients a step are checked for NaN"
    assert names(facts, suspect.rows) == ["aten::isnan"] and len(suspect.rows) == 6
    change = change_of(suspect)
    assert names(facts, change.unblocked) == ["cudaMemcpyAsync", "cudaStreamSynchronize"]
    told = names(facts, change.shortened)
    assert told == ["aten::_is_any_true", "aten::isnan", "aten::item", "python3.11/traceback.py(229): format_stack"]
    assert names(facts, change.removed) == ["Memcpy DtoH (Device -> Pageable)", "ne"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(backward(("AddmmBackward0", False), ("ReluBackward0", False)), id="no checks"),
        pytest.param(backward(("MyBackward", True), *[("AddmmBackward0", False)] * 3), id="a node that checks itself"),
        pytest.param(lambda start, c: runs(start, c, "aten::isnan", {"ne": US}), id="a check of the loss"),
    ],
)  # fmt: skip
def test_single_checks_are_no_anomaly_mode(body: Any):
    assert not accused(ANOMALY, steps(body))


def filled(count: int = 6, *, parent: str = "aten::empty", beside: bool = False):
    """New tensors that are filled where they are made; `beside`: by the operator around."""

    def body(start: int, correlation: int) -> list[Event]:
        events: list[Event] = []
        for number in range(count):
            at = start + (10 + 50 * number) * US
            length = 2 * US if beside else 30 * US
            outer = [op(at - 2 * US, 40 * US, "aten::full"), op(at - US, length, parent)]
            events += runs(at + 5 * US, correlation + number, "aten::fill_", {FILL: 5 * US}, *outer)
        return events

    return body


@pytest.mark.parametrize("parent", ["aten::empty", "aten::empty_strided", "aten::new_empty", "aten::resize_"])
def test_fills_of_new_tensors_are_accused_with_their_kernels(parent: str):
    facts = steps(filled(parent=parent))
    suspect = only(FILLS, facts)
    assert suspect.title == "Deterministic mode fills 6 new tensors a step, 0.03 ms of kernels"
    change = change_of(suspect)
    assert names(facts, suspect.rows) == ["aten::fill_"] and len(suspect.rows) == 18
    assert change.shortened.tolist() == suspect.rows.tolist()
    assert names(facts, change.removed) == [FILL] and len(change.removed) == 18


def test_fills_by_the_processor_are_accused_without_a_device():
    def body(start: int, _: int) -> list[Event]:
        pairs = [(op(start + n * 9 * US, 8 * US, "aten::empty"), op(start + n * 9 * US + US, 5 * US, "aten::fill_"))
                 for n in range(5)]  # fmt: skip
        return [item for pair in pairs for item in pair]

    assert only(FILLS, steps(body)).title == "Deterministic mode fills 5 new tensors a step"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(filled(4), id="few"),
        pytest.param(filled(beside=True), id="torch.full fills what it made"),
        pytest.param(filled(parent="aten::ones"), id="torch.ones"),
    ],
)
def test_fills_that_were_asked_for_are_not_accused(body: Any):
    assert not accused(FILLS, steps(body))


def scattered(*outer: tuple[str, str], fills: int = 6, took: int = MS):
    """Sorts below operators, given with whether they accumulate, in deterministic mode or not."""

    def body(start: int, correlation: int) -> list[Event]:
        at = start + 2 * MS
        around = [
            op(at - (9 - depth) * US, 60 * US - 2 * depth * US, name, values=["", "", "", accumulate])
            for depth, (name, accumulate) in enumerate(outer)
        ]
        mine = runs(at, correlation + 50, "aten::sort", {SORT: took}, *around)
        return [*filled(fills)(start, correlation), *mine, *other(start + 3 * MS, correlation + 70, 3 * MS)]

    return body


PUT, PUT_ADDING = ("aten::_index_put_impl_", "False"), ("aten::_index_put_impl_", "True")


@pytest.mark.parametrize("outer", [(PUT,), (("aten::scatter_add_", ""), PUT_ADDING), (("aten::index_add_", ""),)])
def test_sorts_of_deterministic_operators_are_told_without_a_gain(outer: Any):
    facts = steps(scattered(*outer))
    suspect = only(DETERMINISTIC, facts)
    assert "take 25 % of the kernels' time" in suspect.title and names(facts, suspect.rows) == [SORT]
    assert suspect.verdict == "cannot-tell" and suspect.change is None


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(scattered(PUT, fills=0), id="not in deterministic mode"),
        pytest.param(scattered(PUT_ADDING), id="it sorts in the usual mode as well"),
        pytest.param(scattered(("aten::topk", "")), id="another operator sorts"),
        pytest.param(scattered(PUT, took=100 * US), id="a small share"),
    ],
)
def test_sorts_of_the_usual_mode_are_not_accused(body: Any):
    assert not accused(DETERMINISTIC, steps(body))


def cells(count: int = 30, *after: str, name: str = "aten::lstm_cell"):
    def body(start: int, correlation: int) -> list[Event]:
        events = [frame(start + US, 9 * MS, LINE)]
        for number in range(count):
            at = start + (10 + 100 * number) * US
            events += runs(
                at, correlation + number, "aten::_thnn_fused_lstm_cell", {"lstm": 5 * US}, op(at - US, 25 * US, name)
            )
            events += [op(at + (30 + 9 * index) * US, 5 * US, item) for index, item in enumerate(after)]
        return events

    return body


@pytest.mark.parametrize("name", ["aten::lstm_cell", "aten::gru_cell", "aten::rnn_tanh_cell"])
def test_a_loop_over_cells_is_accused_at_its_line(name: str):
    facts = steps(cells(name=name))
    suspect = only(RECURRENT, facts)
    assert suspect.title == "A loop at model.py:12 forward runs 30 recurrent cells a step, one after the other"
    assert names(facts, suspect.rows) == [name] and len(suspect.rows) == 90
    change = change_of(suspect)
    assert change.shortened.tolist() == suspect.rows.tolist() and change.host_scale == pytest.approx(0.1)
    assert suspect.cautious is not None and suspect.cautious.host_scale == 0.5


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(cells(19), id="short sequences"),
        pytest.param(cells(30, "aten::bmm", "aten::_softmax", "aten::bmm"), id="a decoder with attention"),
        pytest.param(cells(30, "aten::argmax"), id="a decoder that chooses each token"),
        pytest.param(cells(30, name="aten::linear"), id="no cells"),
    ],
)
def test_decoders_and_short_loops_are_not_accused(body: Any):
    assert not accused(RECURRENT, steps(body))


def test_attention_after_the_loop_does_not_make_it_a_decoder():
    def body(start: int, correlation: int) -> list[Event]:
        tail = [op(start + (5000 + 20 * number) * US, 10 * US, "aten::bmm") for number in range(60)]
        return [*cells()(start, correlation), *tail]

    assert len(only(RECURRENT, steps(body)).rows) == 90


def layer(copies: int, *, inside: str = "aten::_cudnn_rnn"):
    def body(start: int, correlation: int) -> list[Event]:
        events = [frame(start + US, 2 * MS, LINE), op(start + 10 * US, MS, inside)]
        for number in range(copies):
            at = start + (20 + 30 * number) * US
            events += runs(at, correlation + number, "aten::copy_", {"copy": 5 * US})
        return events

    return body


def test_weights_in_several_pieces_are_gathered_in_every_step():
    facts = steps(layer(4))
    suspect = only(RECURRENT, facts)
    assert suspect.title == "Recurrent weights are gathered into one piece 4 times a step"
    change = change_of(suspect)
    assert names(facts, change.shortened) == ["aten::copy_"] and names(facts, change.removed) == ["copy"]
    assert suspect.where.label == "model.py:12 forward"
    flattened = steps(lambda start, c: runs(start, c, "aten::_cudnn_rnn_flatten_weight", {"copy": 5 * US}))
    assert names(flattened, only(RECURRENT, flattened).rows) == ["aten::_cudnn_rnn_flatten_weight"]


def test_copies_of_inputs_and_a_gathering_that_happens_once_are_not_accused():
    assert not accused(RECURRENT, steps(layer(3)))
    assert not accused(RECURRENT, steps(layer(6, inside="aten::lstm")))
    once = steps(
        lambda start, c: runs(start, c, "aten::_cudnn_rnn_flatten_weight", {"copy": US}) if c == 20_001 else []
    )
    assert not accused(RECURRENT, once)


def forward(*, numbered: bool = True, same: bool = False, count: int = 12, more: tuple[Event, ...] = ()):
    """Operators of a forward pass, each with the number that autograd gave it."""

    def body(start: int, correlation: int) -> list[Event]:
        events = list(more)
        for number in range(count):
            sequence = 7 if same else correlation + number
            told = {"Sequence number": sequence} if numbered else {}
            events.append(op(start + (10 + 30 * number) * US, 20 * US, "aten::addmm", **told))
        return events

    return body


def test_an_inference_that_records_a_graph_is_told_without_a_gain():
    facts = steps(forward())
    suspect = only(UNUSED, facts)
    assert suspect.title == "12 operators a step record a graph for a backward pass that never comes"
    assert len(suspect.rows) == 36 and suspect.verdict == "cannot-tell" and "inference_mode" in suspect.fix


def test_operators_at_the_top_of_a_thread_count_whatever_the_first_event_of_the_trace_is():
    facts = steps(forward(), marks=False)
    assert np.count_nonzero(facts.trace.ts_ns == 0) == 0
    assert len(only(UNUSED, facts).rows) == 36


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(forward(numbered=False), id="no_grad"),
        pytest.param(forward(same=True), id="frozen weights: nothing takes a number"),
        pytest.param(forward(count=9), id="few operators"),
        pytest.param(forward(more=(op(0, US, f"{NODE}AddmmBackward0"),)), id="a backward pass follows"),
        pytest.param(forward(more=(annotation(0, US, "Optimizer.step#AdamW.step"),)), id="an optimizer"),
    ],
)
def test_training_and_inference_without_a_graph_are_not_accused(body: Any):
    assert not accused(UNUSED, steps(body))
