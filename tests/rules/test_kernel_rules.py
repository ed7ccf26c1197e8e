"""Rules about what kernels are for: copies, casts, attention, chains, gradients, losses and small grids."""

from typing import Any

import pytest
from kernel_steps import MS, US, Event, accused, change_of, names, only, op, other, runs, steps
from written import annotation, call, kernel

from torchdiag.rules.attention_unfused import RULE as ATTENTION
from torchdiag.rules.cast_ping_pong import RULE as CASTS
from torchdiag.rules.contiguous_copies import RULE as COPIES
from torchdiag.rules.elementwise_chain_unfused import RULE as CHAINS
from torchdiag.rules.embedding_grad_dense import RULE as EMBEDDING
from torchdiag.rules.index_backward_duplicates import RULE as INDEX
from torchdiag.rules.loss_large_vocab import RULE as LOSS
from torchdiag.rules.low_occupancy import RULE as OCCUPANCY

COPY = "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >"
MUL = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float> >"
REDUCE = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float> > >"
SOFTMAX = "void cunn_SoftMaxForward<4, float, float, float, at::native::SoftMaxForwardEpilogue>"
GEMM = "ampere_sgemm_128x64_tn"
FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128> >"
LINE = "model.py(12): forward"
CODES = {"half": ("5", "c10::Half"), "float": ("6", "float"), "bfloat16": ("15", "c10::BFloat16")}


def cast(at: int, correlation: int, source: str, target: str, *, size: int = 4096, took: int = MS) -> list[Event]:
    """A conversion as torch 2.14 records it."""
    return runs(
        at, correlation, "aten::_to_copy", {COPY: took}, line=LINE,
        dims=[[8, size], [], []], types=[CODES[source][1], "Scalar", ""], values=["", CODES[target][0], ""],
    )  # fmt: skip


def test_a_conversion_there_and_back_is_accused_and_one_of_the_two_may_go():
    def body(start: int, correlation: int) -> list[Event]:
        there = cast(start + 10 * US, correlation, "bfloat16", "float")
        norm = runs(start + 100 * US, correlation + 10, "aten::native_layer_norm", {"layer_norm_kernel": MS})
        return [*there, *norm, *cast(start + 200 * US, correlation + 20, "float", "bfloat16")]

    facts = steps(body)
    suspect = only(CASTS, facts)
    assert "1 tensors a step are converted to another precision and back at model.py:12 forward" in suspect.title
    assert "67 % of the kernels' time" in suspect.title
    change = change_of(suspect)
    assert len(suspect.rows) == 3 == len(change.removed) and names(facts, change.removed) == [COPY]
    assert change.shortened.tolist() == suspect.rows.tolist()
    assert suspect.hopeful is not None and len(suspect.hopeful.removed) == 6


def between_casts(*middle: str, back: tuple[str, str] = ("float", "half"), size: int = 4096, took: int = MS):
    def body(start: int, correlation: int) -> list[Event]:
        events = cast(start + 10 * US, correlation, "half", "float", took=took)
        for number, name in enumerate(middle):
            events += runs(start + (100 + 30 * number) * US, correlation + 50 + number, name, {ADD: 20 * US})
        events += cast(start + 900 * US, correlation + 90, *back, size=size, took=took)
        return events + other(start + MS, correlation + 95, 2 * MS)

    return body


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(between_casts("aten::addmm"), id="a product is what the conversion is for"),
        pytest.param(between_casts("aten::scaled_dot_product_attention"), id="attention in between"),
        pytest.param(between_casts(back=("half", "float")), id="twice the same way"),
        pytest.param(between_casts(back=("float", "bfloat16")), id="on to a third precision"),
        pytest.param(between_casts(size=1024), id="another shape"),
        pytest.param(between_casts(took=10 * US), id="a small share"),
        pytest.param(
            lambda start, c: cast(start, c, "float", "bfloat16") + cast(start + MS, c + 9, "float", "bfloat16"),
            id="weights cast by autocast once a forward pass",
        ),
    ],
)
def test_conversions_that_are_of_use_are_not_accused(body: Any):
    assert not accused(CASTS, steps(body))


def test_a_pair_with_elementwise_work_between_is_one():
    assert len(only(CASTS, steps(between_casts("aten::pow", "aten::mean", "aten::rsqrt", "aten::mul"))).rows) == 3


def copied(name: str, took: int, *inner: str, rest: int = 4 * MS, kernel_name: str = COPY):
    def body(start: int, correlation: int) -> list[Event]:
        at = start + 10 * US
        outer = [
            op(at - (9 - depth) * 100, 23 * US - depth * 200, item) for depth, item in enumerate((name, *inner[:-1]))
        ]
        mine = runs(at, correlation, inner[-1] if inner else name, {kernel_name: took}, *outer, line=None)
        line = [{**op(at - 2 * US, 26 * US, LINE), "cat": "python_function", "args": {}}]
        return line + mine + other(start + 100 * US, correlation + 10, rest)

    return body


@pytest.mark.parametrize(
    ("name", "inner", "kernel_name"),
    [
        ("aten::contiguous", ("aten::clone", "aten::copy_"), COPY),
        ("aten::reshape", ("aten::clone", "aten::copy_"), COPY),
        ("aten::flatten", ("aten::clone", "aten::copy_"), COPY),
        (
            "aten::cat",
            (),
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 64, 64>",
        ),
    ],
)
def test_copies_that_only_change_the_layout_are_told_with_half_of_their_time(name: str, inner: Any, kernel_name: str):
    facts = steps(copied(name, MS, *inner, kernel_name=kernel_name))
    suspect = only(COPIES, facts)
    assert "1 tensors a step are copied at model.py:12 forward" in suspect.title
    assert "20 % of the kernels' time" in suspect.title
    assert names(facts, suspect.rows) == [name] and suspect.confidence == "low"
    change = change_of(suspect)
    assert len(change.scaled) == 3 and change.device_scale == 0.5
    assert suspect.cautious is not None and suspect.cautious.device_scale == 1.0
    assert suspect.hopeful is not None and suspect.hopeful.removed.tolist() == change.scaled.tolist()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(copied("aten::contiguous", 100 * US, "aten::clone", "aten::copy_"), id="a small share"),
        pytest.param(copied("aten::masked_fill", MS, "aten::clone", "aten::copy_"), id="a copy to write into"),
        pytest.param(copied("aten::clone", MS, "aten::copy_"), id="a copy that was asked for"),
        pytest.param(copied("aten::to", MS, "aten::_to_copy", "aten::copy_"), id="a conversion"),
    ],
)
def test_copies_that_are_meant_are_not_accused(body: Any):
    assert not accused(COPIES, steps(body))


def attention(
    length: int = 1024, *, axis: str = "-1", after: str = "aten::bmm", softmax_took: int = MS, math: bool = False,
    fused: int = 0, width: int = 64,
):  # fmt: skip
    """Product, scale, softmax, product, with scores of [2, 8, L, L]; and a layer as large as the scores."""
    scores = [2, 8, length, length]

    def body(start: int, correlation: int) -> list[Event]:
        at, flat = start + 100 * US, [16, length, length]
        events = [op(at - 2 * US, 600 * US, "aten::_scaled_dot_product_attention_math")] if math else []
        events += runs(at, correlation, "aten::bmm", {GEMM: MS}, dims=[[16, length, 64], [16, 64, length]], line=LINE)
        events += runs(at + 50 * US, correlation + 10, "aten::mul", {MUL: MS}, dims=[scores, []], line=LINE)
        events += runs(
            at + 100 * US, correlation + 20, "aten::_softmax", {SOFTMAX: softmax_took}, dims=[scores, [], []],
            values=["", axis, "False"], line=LINE,
        )  # fmt: skip
        events += runs(at + 150 * US, correlation + 30, after, {GEMM: MS}, dims=[flat, [16, length, width]], line=LINE)
        gelu = [length, 16 * length]
        events += runs(at + 200 * US, correlation + 40, "aten::gelu", {ADD: MS}, dims=[[1, *gelu]])
        if fused:
            events += runs(at + 250 * US, correlation + 50, "aten::_flash_attention_forward", {FLASH: fused})
        return events

    return body


def test_attention_in_single_operators_loses_its_passes_over_the_scores():
    facts = steps(attention())
    suspect = only(ATTENTION, facts)
    assert "Attention at model.py:12 forward stores its scores, up to 1024 x 1024" in suspect.title
    # Scale, softmax and the second product take the scores: 3 of 5 ms.
    assert "60 % of the kernels' time" in suspect.title
    assert names(facts, suspect.rows) == ["aten::_softmax"] and len(suspect.rows) == 3
    assert names(facts, change_of(suspect).removed) == sorted([MUL, SOFTMAX])
    assert suspect.cautious is not None and suspect.cautious.device_scale == 0.5
    assert "F.scaled_dot_product_attention" in suspect.fix


def test_the_fallback_of_the_fused_function_is_told_to_be_one():
    assert "sdpa_kernel" in only(ATTENTION, steps(attention(math=True))).fix


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(attention(128), id="short sequences"),
        pytest.param(attention(axis="1"), id="a softmax over channels"),
        pytest.param(attention(after="aten::sum"), id="scores that no product takes"),
        pytest.param(attention(fused=4 * MS), id="fused attention does the work"),
    ],
)
def test_other_softmaxes_and_short_or_fused_attention_are_not_accused(body: Any):
    assert not accused(ATTENTION, steps(body))


def chain(*kernels: tuple[str, str, int], took: int = 3 * MS, rest: int = 10 * US, optimizer: bool = False):
    """Kernels by operator, name and elements, one after the other without a gap."""

    def body(start: int, correlation: int) -> list[Event]:
        at, events = start + 10 * US, []
        if optimizer:
            events.append(annotation(start + 5 * US, 900 * US, "Optimizer.step#SGD.step"))
        for number, (name, called, size) in enumerate(kernels):
            here = at + number * 10 * US
            events.append(op(here, 8 * US, name, [[size, 8]]))
            events.append(call(here + US, US, correlation + number))
            begun = start + 100 * US + number * took // len(kernels)
            events.append(kernel(begun, took // len(kernels), correlation + number, name=called))
        last = start + 100 * US + took
        return [*events, call(start + 950 * US, US, correlation + 99), kernel(last, rest, correlation + 99, name=GEMM)]

    return body


RMS_NORM = (("aten::pow", MUL, 4096), ("aten::mean", REDUCE, 4096), ("aten::rsqrt", ADD, 8), ("aten::mul", MUL, 4096))
POINTWISE = (("aten::pow", MUL, 4096), ("aten::add", ADD, 4096), ("aten::mul", MUL, 4096))


def test_a_chain_of_small_operators_is_accused():
    facts = steps(chain(*POINTWISE, took=9 * MS, rest=MS // 2))
    suspect = only(CHAINS, facts)
    assert "1 chains of elementwise kernels a step, 3 kernels each, take 95 % of the kernels' time" in suspect.title
    change = change_of(suspect)
    assert len(suspect.rows) == 3 and len(change.scaled) == 9
    assert change.device_scale == pytest.approx(1 - 2 / 3 / 2)
    assert suspect.hopeful is not None and suspect.hopeful.device_scale == pytest.approx(1 / 3)
    assert suspect.cautious is not None and suspect.cautious.device_scale == 1.0


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(chain(*POINTWISE, took=3 * MS), id="the device waits for launches"),
        pytest.param(chain(*POINTWISE[:2], took=9 * MS), id="two are no chain"),
        pytest.param(chain(*(POINTWISE[1],) * 5, took=9 * MS), id="one operator again and again is a loop"),
        pytest.param(chain(*POINTWISE, took=MS, rest=8 * MS), id="a small share"),
        pytest.param(
            chain(("aten::pow", MUL, 4096), ("aten::add", ADD, 64), ("aten::mul", MUL, 4096), took=9 * MS),
            id="tensors of other sizes",
        ),
        pytest.param(
            chain(POINTWISE[0], ("aten::mm", GEMM, 4096), *POINTWISE[1:], took=9 * MS), id="a product in between"
        ),
        pytest.param(chain(*POINTWISE, took=9 * MS, optimizer=True), id="an optimizer has a rule of its own"),
    ],
)
def test_short_loops_and_small_chains_are_not_accused(body: Any):
    assert not accused(CHAINS, steps(body))


INDEXING = "void at::native::(anonymous namespace)::indexing_backward_kernel<float, 4>(long*, long*, float*)"
SORT = "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, long, int>::Policy800>"
FORWARD_INDEX = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int)"


def indexed(took: int = MS, forward: int = 20 * US, *, node: str = "IndexBackward0", called: str = INDEXING):
    def body(start: int, correlation: int) -> list[Event]:
        at = start + 200 * US
        outer = [
            op(at - 3 * US, 30 * US, f"autograd::engine::evaluate_function: {node}"),
            op(at - 2 * US, 28 * US, node),
        ]
        return [
            *runs(start + 10 * US, correlation, "aten::index", {FORWARD_INDEX: forward}, line=LINE),
            *runs(at, correlation + 10, "aten::_index_put_impl_", [(SORT, 50 * US), (called, took)], *outer),
            *other(start + 400 * US, correlation + 20, 3 * MS),
        ]

    return body


def test_a_gradient_of_indexing_that_takes_far_longer_than_the_indexing_is_accused():
    facts = steps(indexed())
    suspect = only(INDEX, facts)
    assert "takes 1 ms a step, 25 % of the kernels' time" in suspect.title
    assert names(facts, suspect.rows) == ["aten::_index_put_impl_"] and len(suspect.rows) == 3
    assert names(facts, change_of(suspect).scaled) == [INDEXING]
    assert change_of(suspect).device_scale == pytest.approx(0.2)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(indexed(took=100 * US), id="five times the forward pass"),
        pytest.param(indexed(took=50 * US, forward=US), id="a small share"),
        pytest.param(indexed(called=SORT), id="only a sort"),
        pytest.param(indexed(node="IndexPutBackward0"), id="no gradient of indexing"),
    ],
)
def test_cheap_gradients_of_indexing_are_not_accused(body: Any):
    assert not accused(INDEX, steps(body))


def embedding(table: int = 1_000_000, looked_up: int = 4096, *, took: int = MS, told: bool = True):
    def body(start: int, correlation: int) -> list[Event]:
        mine = runs(
            start + 10 * US, correlation, "aten::embedding_dense_backward", {ADD: took}, line=LINE,
            dims=[[8, looked_up // 8, 64], [8, looked_up // 8], [], [], []],
            types=["float", "long int", "Scalar", "Scalar", "Scalar"],
            values=["", "", str(table), "-1", "False"] if told else [],
        )  # fmt: skip
        return [*mine, *other(start + 100 * US, correlation + 10, 3 * MS)]

    return body


def test_the_dense_gradient_of_a_table_of_which_little_was_read_is_accused():
    facts = steps(embedding())
    suspect = only(EMBEDDING, facts)
    assert suspect.title == (
        "Dense gradients of large embeddings at model.py:12 forward take 25 % of the kernels' time"
    )
    assert names(facts, suspect.rows) == ["aten::embedding_dense_backward"]
    assert change_of(suspect).device_scale == pytest.approx(0.1)
    assert suspect.cautious is not None and suspect.cautious.device_scale == 0.5


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(embedding(50_257, 32_768), id="much of the table was read"),
        pytest.param(embedding(10_000, 8), id="a small table"),
        pytest.param(embedding(took=100 * US), id="a small share"),
        pytest.param(embedding(told=False), id="the size of the table is not recorded"),
    ],
)
def test_small_or_mostly_read_tables_are_not_accused(body: Any):
    assert not accused(EMBEDDING, steps(body))


def loss(vocabulary: int = 128_256, tokens: int = 2048, *, name: str = "aten::_log_softmax", took: int = MS):
    logits = [tokens, vocabulary]

    def body(start: int, correlation: int) -> list[Event]:
        at = start + 10 * US
        return [
            *runs(at, correlation, "aten::mm", {GEMM: 3 * MS}, dims=[[tokens, 64], [64, vocabulary], logits]),
            *runs(at + 100 * US, correlation + 10, "aten::_to_copy", {COPY: took}, dims=[logits, []], line=LINE),
            *runs(at + 200 * US, correlation + 20, name, {SOFTMAX: took}, dims=[logits, [], []], line=LINE),
            *runs(at + 300 * US, correlation + 30, "aten::nll_loss_forward", {REDUCE: took}, dims=[logits, [tokens]]),
        ]

    return body


def test_passes_over_the_logits_of_a_large_vocabulary_are_accused():
    facts = steps(loss())
    suspect = only(LOSS, facts)
    assert "goes over logits of 262,668,288 elements 3 times a step, 50 % of the kernels' time" in suspect.title
    assert suspect.where.label == "model.py:12 forward"
    change = change_of(suspect)
    assert names(facts, change.scaled) == sorted([COPY, SOFTMAX, REDUCE]) and change.device_scale == 0.5
    assert suspect.cautious is not None and suspect.cautious.device_scale == 1.0


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(loss(10_000), id="few words"),
        pytest.param(loss(tokens=8), id="few tokens"),
        pytest.param(loss(name="aten::_softmax"), id="probabilities to draw from are no loss"),
        pytest.param(loss(took=50 * US), id="a small share"),
    ],
)
def test_small_losses_are_not_accused(body: Any):
    assert not accused(LOSS, steps(body))


def few_blocks(blocks: float, took: int = MS, called: str = REDUCE):
    def body(start: int, correlation: int) -> list[Event]:
        mine = runs(start + 10 * US, correlation, "aten::sum", {called: took}, line=LINE, **{"blocks per SM": blocks})
        return [*mine, *other(start + 100 * US, correlation + 10, 3 * MS)]

    return body


def test_a_kernel_of_few_blocks_with_much_of_the_time_is_told_without_a_gain():
    suspect = only(OCCUPANCY, steps(few_blocks(0.25)))
    assert "takes 25 % of the kernels' time with fewer blocks than the device has multiprocessors" in suspect.title
    assert suspect.verdict == "cannot-tell" and suspect.change is None and suspect.where.label == "model.py:12 forward"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(few_blocks(1.0), id="a block for each"),
        pytest.param(few_blocks(0.25, 100 * US), id="a small share"),
        pytest.param(few_blocks(0.25, called=GEMM), id="tensor cores use few blocks on purpose"),
        pytest.param(few_blocks(0.25, called="ncclDevKernel_AllReduce_Sum_f32_RING_LL"), id="a collective"),
    ],
)
def test_kernels_that_use_few_blocks_on_purpose_are_not_accused(body: Any):
    assert not accused(OCCUPANCY, steps(body))
