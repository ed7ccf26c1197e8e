"""Whatever a trace claims that operators were called with, rules about kernels answer."""

from importlib import import_module

import pytest
from kernel_steps import MS, US, Event, accused, runs, steps

RULES = (
    "attention_unfused", "cast_ping_pong", "contiguous_copies", "conv_slow_path", "elementwise_chain_unfused",
    "embedding_grad_dense", "fp32_matmul_no_tf32", "fp64_on_gpu", "gemm_misaligned", "loss_large_vocab",
    "low_occupancy", "no_mixed_precision", "rnn_unfused", "unused_gradient", "deterministic_slow_kernels",
)  # fmt: skip
OPERATORS = (
    "aten::mm", "aten::bmm", "aten::_softmax", "aten::_log_softmax", "aten::_to_copy", "aten::embedding_dense_backward",
    "aten::cudnn_convolution", "aten::mul", "aten::lstm_cell", "aten::index_put_", "aten::contiguous",
)  # fmt: skip
KERNELS = (
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_32x6_nn_align1>", "ampere_sgemm_128x64_tn",
    "void implicit_convolve_sgemm<float, float>", "void at::native::elementwise_kernel<128, 2>",
)  # fmt: skip
HUGE = 2**63 - 1


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({}, id="none"),
        pytest.param({"dims": [[]], "types": [""], "values": [""]}, id="empty"),
        pytest.param({"dims": [[HUGE] * 4] * 5, "types": ["c10::Half"] * 5, "values": [str(HUGE)] * 5}, id="huge"),
        pytest.param({"dims": [[0, 0, 0]] * 3, "types": ["double"] * 3, "values": ["0"] * 3}, id="nothing in them"),
        pytest.param({"dims": [[[1, 2], "x", None]], "types": [[], 7], "values": [None, {}]}, id="of other types"),
        pytest.param({"dims": "[[1, 2", "types": '["float"', "values": "["}, id="cut off"),
        pytest.param(
            {"types": ["double"], "values": ["\u00b2"] * 5, "dims": [[9], [9], []]}, id="digits that are none"
        ),
    ],
)
def test_a_rule_answers_whatever_the_arguments(name: str, arguments: dict):
    def body(start: int, correlation: int) -> list[Event]:
        events: list[Event] = []
        for number, operator in enumerate(OPERATORS):
            ran = dict.fromkeys(KERNELS, MS // 20)
            at = start + (10 + 30 * number) * US
            events += runs(at, correlation + 10 * number, operator, ran, **arguments)
        return events

    accused(import_module(f"torchdiag.rules.{name}").RULE, steps(body, count=2))
