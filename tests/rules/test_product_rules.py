"""Rules about matrix products and convolutions accuse what is slow by its arithmetic, and nothing else."""

from typing import Any

import pytest
from kernel_steps import (
    A100,
    MI300,
    MS,
    PASCAL,
    RTX,
    US,
    V100,
    Body,
    Event,
    accused,
    change_of,
    names,
    only,
    other,
    runs,
    steps,
)

from torchdiag.rules.conv_slow_path import RULE as SLOW_CONVOLUTION
from torchdiag.rules.fp32_matmul_no_tf32 import RULE as NO_TF32
from torchdiag.rules.fp64_on_gpu import RULE as DOUBLE
from torchdiag.rules.gemm_misaligned import RULE as MISALIGNED
from torchdiag.rules.layout_transpose import RULE as LAYOUT
from torchdiag.rules.no_mixed_precision import RULE as NO_HALF

SGEMM = "ampere_sgemm_128x64_tn"
TF32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_execute_kernel"
HALF = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"
STORED_HALF = "ampere_fp16_sgemm_fp16_64x64_tn"
FLOATS = ["float", "float"]
LINE = "model.py(12): forward"
BATCHED_TRANSPOSE = "batched_transpose_32x32_half"


def product(
    kernel: str, took: int, name: str = "aten::mm", types: list[str] = FLOATS, *, rest: int = 2 * MS, dims: tuple = ()
):
    """Steps of one product at a line of a person's, and other work."""

    def body(start: int, correlation: int) -> list[Event]:
        dims_here = dims or ([4096, 4096], [4096, 4096])
        mine = runs(start + 10 * US, correlation, name, {kernel: took}, dims=dims_here, types=types, line=LINE)
        return mine + other(start + 60 * US + took, correlation + 100, rest)

    return body


def test_full_products_on_a_gpu_with_tf32_are_accused():
    facts = steps(product(SGEMM, 2 * MS))
    suspect = only(NO_TF32, facts)
    assert suspect.title == "FP32 matrix products without TF32 take 50 % of the kernels' time, 1 kernels a step"
    assert suspect.where.label == "model.py:12 forward"
    assert names(facts, suspect.rows) == [SGEMM] and len(suspect.rows) == 3
    assert change_of(suspect).device_scale == pytest.approx(1 / 2.5)
    assert suspect.cautious is not None and suspect.cautious.device_scale == 1.0
    assert suspect.hopeful is not None and suspect.hopeful.device_scale == pytest.approx(0.25)


def test_tf32_is_worth_little_on_gpus_for_graphics():
    suspect = only(NO_TF32, steps(product(SGEMM, 2 * MS), device=RTX))
    assert change_of(suspect).device_scale == pytest.approx(1 / 1.2)


@pytest.mark.parametrize(
    ("body", "device"),
    [
        pytest.param(product(SGEMM, 2 * MS), V100, id="no TF32 before compute capability 8"),
        pytest.param(product(SGEMM, 2 * MS), MI300, id="AMD"),
        pytest.param(product(SGEMM, 2 * MS), {}, id="an unknown device"),
        pytest.param(product(TF32, 2 * MS), A100, id="TF32 is on"),
        pytest.param(product(HALF, 2 * MS, types=["c10::BFloat16"] * 2), A100, id="half precision"),
        pytest.param(product(SGEMM, MS // 5), A100, id="a small share"),
        pytest.param(product(SGEMM, 9 * US, rest=20 * US), A100, id="small products"),
        pytest.param(product(SGEMM, 2 * MS, "aten::cudnn_convolution"), A100, id="a part of a convolution"),
        pytest.param(product(STORED_HALF, 2 * MS, types=["c10::Half"] * 2), A100, id="stored in half precision"),
        pytest.param(product("void gemv2T_kernel_val<int, int, float, float, float>", 2 * MS), A100, id="a vector"),
    ],
)  # fmt: skip
def test_products_that_tf32_does_not_help_are_not_accused(body: Body, device: dict[str, Any]):
    assert not accused(NO_TF32, steps(body, device=device))


def test_doubles_among_floats_are_accused_where_they_come_in():
    facts = steps(product("ampere_dgemm_64x64_tn", MS, "aten::mm", ["double", "double"]))
    suspect = only(DOUBLE, facts)
    assert suspect.title == (
        "Kernels on float64 tensors take 33 % of the kernels' time, most of them at model.py:12 forward"
    )
    assert names(facts, suspect.rows) == ["ampere_dgemm_64x64_tn"]
    assert change_of(suspect).device_scale == 0.5 and suspect.verdict is None


def test_a_program_all_in_double_may_mean_it():
    suspect = only(DOUBLE, steps(product("ampere_dgemm_64x64_tn", 4 * MS, "aten::mm", ["double"] * 2, rest=10 * US)))
    assert suspect.verdict == "cannot-tell" and suspect.change is None and "float32" in suspect.reason


@pytest.mark.parametrize(
    ("body", "device"),
    [
        pytest.param(product(SGEMM, MS, "aten::mul", ["float", "double"], dims=([9, 9], [])), A100, id="a factor"),
        pytest.param(product(SGEMM, MS, "aten::add", ["double", "float"], dims=([1], [1])), A100, id="one number"),
        pytest.param(product("dgemm", 50 * US, "aten::mm", ["double"] * 2), A100, id="a small share"),
        pytest.param(product(SGEMM, MS, "custom::op", ["double", "float"]), A100, id="an operator of another library"),
        pytest.param(product(SGEMM, MS), A100, id="floats"),
    ],
)  # fmt: skip
def test_numbers_and_small_shares_in_double_are_not_accused(body: Body, device: dict[str, Any]):
    assert not accused(DOUBLE, steps(body, device=device))


@pytest.mark.parametrize(
    ("device", "dtype"),
    [(A100, "torch.bfloat16)"), (MI300, "torch.bfloat16)"), (V100, "torch.float16 (with torch.amp.GradScaler))")],
)
def test_a_model_all_in_full_precision_may_try_half(device: dict, dtype: str):
    facts = steps(product(SGEMM, 3 * MS), device=device)
    suspect = only(NO_HALF, facts)
    assert "60 % of the kernels' time" in suspect.title and f"dtype={dtype}" in suspect.fix
    assert len(suspect.rows) == 3 and suspect.confidence == "low"
    assert change_of(suspect).device_scale == pytest.approx(1 / 1.5)
    assert suspect.cautious is not None and suspect.cautious.device_scale == 1.0


def with_a_half(kernel: str, types: list[str]):
    def body(start: int, correlation: int) -> list[Event]:
        half = runs(start + 6 * MS, correlation + 50, "aten::mm", {kernel: 50 * US}, types=types)
        return [*product(SGEMM, 3 * MS)(start, correlation), *half]

    return body


@pytest.mark.parametrize(
    ("body", "device"),
    [
        pytest.param(product(SGEMM, 3 * MS), PASCAL, id="no tensor cores"),
        pytest.param(product(SGEMM, 2 * MS), A100, id="half of the time is elsewhere"),
        pytest.param(product(SGEMM, 19 * US, rest=5 * US), A100, id="a small model"),
        pytest.param(with_a_half("ew", ["c10::Half"]), A100, id="a half tensor somewhere"),
        pytest.param(with_a_half(HALF, []), A100, id="a product in half precision"),
        pytest.param(product(HALF, 3 * MS, types=[]), A100, id="all in half"),
    ],
)
def test_half_precision_is_not_advised_where_it_is_there_or_does_not_help(body: Body, device: dict[str, Any]):
    assert not accused(NO_HALF, steps(body, device=device))


VOCABULARY = ([512, 768], [768, 50257])
UNALIGNED = "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align2>"
HALVES = ["c10::BFloat16"] * 2
TENSILE = "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1_SN"


def test_a_vocabulary_of_odd_size_is_accused():
    suspect = only(MISALIGNED, steps(product(UNALIGNED, MS, types=HALVES, dims=VOCABULARY)))
    assert suspect.title == "Products with sizes that are no multiple of 8 (50257) take 33 % of the kernels' time"
    assert suspect.where.label == "model.py:12 forward"
    assert change_of(suspect).device_scale == pytest.approx(1 / 1.35)
    assert suspect.cautious is not None and suspect.cautious.device_scale == 1.0


def test_the_rate_of_aligned_products_of_the_same_trace_tells_the_gain():
    def body(start: int, correlation: int) -> list[Event]:
        aligned = ([512, 768], [768, 50304])
        mine = runs(start + 5 * MS, correlation + 50, "aten::mm", {HALF: MS // 2}, dims=aligned, types=HALVES)
        return [*product(UNALIGNED, MS, types=HALVES, dims=VOCABULARY)(start, correlation), *mine]

    suspect = only(MISALIGNED, steps(body))
    # Twice as fast, for 50304 / 50257 as much to do.
    assert change_of(suspect).device_scale == pytest.approx(0.5 * 50257 / 50304)
    assert "ran 2.00 times as fast here" in suspect.reason


def test_tf32_wants_multiples_of_four():
    kernel = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align1>"
    odd = only(MISALIGNED, steps(product(kernel, MS, dims=([512, 770], [770, 64]))))
    assert odd.title.startswith("Products with sizes that are no multiple of 4 (770)")
    assert not accused(MISALIGNED, steps(product(kernel, MS, dims=([512, 772], [772, 64]))))


@pytest.mark.parametrize(
    ("kernel", "types", "dims", "took", "found"),
    [
        pytest.param(UNALIGNED, HALVES, ([512, 768], [768, 1024]), MS, 0, id="even sizes"),
        pytest.param(HALF, HALVES, VOCABULARY, MS, 0, id="a kernel for aligned data"),
        pytest.param(UNALIGNED, HALVES, ([512, 3], [3, 5]), MS, 0, id="tiny"),
        pytest.param(UNALIGNED, HALVES, VOCABULARY, 20 * US, 0, id="a small share"),
        pytest.param("cutlass_80_simt_sgemm_128x64_8x5_nn_align1", FLOATS, VOCABULARY, MS, 0, id="no tensor cores"),
        pytest.param(TENSILE, HALVES, VOCABULARY, MS, 1, id="AMD's names do not tell"),
        pytest.param(TENSILE, HALVES, ([511, 768], [768, 1024]), MS, 0, id="AMD: rows are not what lies together"),
        pytest.param(UNALIGNED, HALVES, ([], []), MS, 0, id="no matrices"),
    ],
)  # fmt: skip
def test_products_that_are_aligned_or_small_are_not_accused(
    kernel: str, types: list, dims: tuple, took: int, found: int
):
    assert len(accused(MISALIGNED, steps(product(kernel, took, types=types, dims=dims)))) == found


def test_conversions_between_layouts_are_accused():
    def body(start: int, correlation: int) -> list[Event]:
        pairs = [(BATCHED_TRANSPOSE, 300 * US), ("igemm_fwd_gtcx3_nhwc_bf16", MS), (BATCHED_TRANSPOSE, 300 * US)]
        return runs(start + 10 * US, correlation, "aten::miopen_convolution", pairs, line=LINE)

    facts = steps(body, device=MI300)
    suspect = only(LAYOUT, facts)
    assert suspect.title == "Conversions between NCHW and NHWC take 38 % of the kernels' time, 2 a step"
    assert names(facts, change_of(suspect).removed) == [BATCHED_TRANSPOSE] and len(suspect.rows) == 6
    assert suspect.cautious is not None and suspect.cautious.device_scale == 0.5
    assert suspect.where.label == "model.py:12 forward"


def test_channels_last_may_not_help_full_precision():
    kernel = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)0>"
    suspect = only(LAYOUT, steps(product(kernel, MS, "aten::cudnn_convolution")))
    assert suspect.confidence == "low" and "FP32" in suspect.reason
    assert suspect.cautious is not None and suspect.cautious.device_scale == 1.0


def test_few_conversions_are_no_finding():
    assert not accused(LAYOUT, steps(product(BATCHED_TRANSPOSE, 100 * US, "aten::cudnn_convolution")))


@pytest.mark.parametrize(
    ("name", "kernel", "types"),
    [
        (
            "aten::cudnn_convolution",
            "void implicit_convolve_sgemm<float, float, 128, 6, 7>",
            ["c10::Half", "c10::Half"],
        ),
        ("aten::cudnn_convolution", "_5x_cudnn_ampere_fp16_scudnn_fp16_128x32_relu_small_nn_v1", ["c10::Half"]),
        ("aten::_conv_depthwise2d", "void conv_depthwise2d_forward_kernel<3, c10::Half, int>", ["c10::Half"]),
        ("aten::_slow_conv2d_forward", "ampere_sgemm_64x64_nn", FLOATS),
    ],
)
def test_convolutions_without_a_fast_kernel_are_told_without_a_gain(name: str, kernel: str, types: list[str]):
    facts = steps(product(kernel, MS, name, types))
    suspect = only(SLOW_CONVOLUTION, facts)
    assert suspect.verdict == "cannot-tell" and suspect.change is None
    assert "33 % of the kernels' time in 1 kernels a step" in suspect.title
    assert suspect.where.label == "model.py:12 forward" and names(facts, suspect.rows) == [kernel]


@pytest.mark.parametrize(
    ("name", "kernel", "types", "took"),
    [
        ("aten::cudnn_convolution", "void implicit_convolve_sgemm<float, float, 128, 6, 7>", FLOATS, MS),
        ("aten::cudnn_convolution", "void implicit_convolve_sgemm<float, float, 128, 6, 7>", ["c10::Half"], 50 * US),
        ("aten::cudnn_convolution", "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc", ["c10::Half"], MS),
        ("aten::_conv_depthwise2d", "void conv_depthwise2d_forward_kernel<3, float, int>", FLOATS, MS),
        ("aten::cudnn_convolution", "void cudnn::cnn::im2col4d_kernel<float, long>", FLOATS, MS),
    ],
)
def test_usual_convolutions_and_small_shares_are_no_slow_path(name: str, kernel: str, types: list[str], took: int):
    assert not accused(SLOW_CONVOLUTION, steps(product(kernel, took, name, types)))
