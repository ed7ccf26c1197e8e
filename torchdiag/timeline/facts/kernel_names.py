"""What kernels are, by their names: the kind of work, and the arithmetic of matrix products."""

import re
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from torchdiag.timeline.facts.kernels import Kernels
from torchdiag.trace import classify


class Sort(IntEnum):
    """Kinds of kernels."""

    OTHER = 0
    GEMM = 1
    CONVOLUTION = 2
    ATTENTION = 3
    LAYOUT = 4
    COPY = 5
    ELEMENTWISE = 6
    REDUCTION = 7
    SOFTMAX = 8
    NORMALISATION = 9
    OPTIMIZER = 10
    FILL = 11


class Arithmetic(IntEnum):
    """What a matrix product or convolution multiplies with."""

    UNTOLD = 0
    FP32 = 1
    TF32 = 2
    HALF = 3
    FP64 = 4


SORTS: tuple[tuple[re.Pattern[str], Sort], ...] = (
    (re.compile(r"multi_tensor_apply|FusedOptimizer|adagrad|AdamFunctor"), Sort.OPTIMIZER),
    (
        re.compile(r"flash_(fwd|bwd)|fmha|attn_(fwd|bwd)|paged_attention|unified_attention|cudnn.*sdpa|mha_"),
        Sort.ATTENTION,
    ),
    (re.compile(r"nchwToNhwc|nhwcToNchw|genericTranspose_kernel|batched_transpose"), Sort.LAYOUT),
    (
        re.compile(
            r"fprop|dgrad|wgrad|implicit_convolve|implicit_gemm|scudnn|winograd|explicit_convolve|conv_depthwise|slow_conv"
            r"|grouped_conv|igemm_(fwd|bwd|wrw)|conv2d|cudnn_convolution|im2col|col2im",
            re.IGNORECASE,
        ),
        Sort.CONVOLUTION,
    ),
    (re.compile(r"gemm|gemv|cutlass|^Cijk_|nvjet|_matmul|^bmm_|wmma|xmma", re.IGNORECASE), Sort.GEMM),
    (re.compile(r"softmax", re.IGNORECASE), Sort.SOFTMAX),
    (
        re.compile(r"layer_?norm|rms_?norm|batch_?norm|bn_(fw|bw)|group_?norm|RowwiseMoments", re.IGNORECASE),
        Sort.NORMALISATION,
    ),
    (re.compile(r"FillFunctor"), Sort.FILL),
    (re.compile(r"direct_copy_kernel|copy_kernel_cuda|CatArrayBatchedCopy|copy_device_to_device"), Sort.COPY),
    (re.compile(r"elementwise_kernel|^triton_poi_"), Sort.ELEMENTWISE),
    (re.compile(r"reduce_kernel|^triton_(red|per)_"), Sort.REDUCTION),
)
"""The first pattern found in a name decides."""

ARITHMETIC: tuple[tuple[re.Pattern[str], Arithmetic], ...] = (
    (re.compile(r"dgemm|f64|double|_DB_"), Arithmetic.FP64),
    (
        re.compile(r"tf32|tensorop_s(1688|16816)(gemm|fprop|dgrad|wgrad)_(?!bf16|fp16|f16)", re.IGNORECASE),
        Arithmetic.TF32,
    ),
    (
        re.compile(r"bf16|fp16|f16|half|hgemm|h16816|h884|h1688|__half|BFloat16|_BBS_|_HHS_|_B_BS_", re.IGNORECASE),
        Arithmetic.HALF,
    ),
    (re.compile(r"nvjet|e4m3|e5m2|fp8|mxfp4|int8|i8816", re.IGNORECASE), Arithmetic.HALF),
    (
        re.compile(r"sgemm|scudnn|f32f32_f32f32_f32|ffma|simt_s|cgemm|_SB_|_S_B_|<float|float,|convolve_sgemm"),
        Arithmetic.FP32,
    ),
)


def sorts(kernels: Kernels) -> NDArray[np.uint8]:
    """uint8[k]: the `Sort` of each kernel."""
    return classify.by_name(kernels.trace, kernels.row, sort_of)


def arithmetic(kernels: Kernels) -> NDArray[np.uint8]:
    """uint8[k]: the `Arithmetic` of each kernel, by its name alone."""
    return classify.by_name(kernels.trace, kernels.row, arithmetic_of)


def sort_of(name: str) -> int:
    """The `Sort` of a kernel."""
    return next((sort for pattern, sort in SORTS if pattern.search(name)), Sort.OTHER)


def arithmetic_of(name: str) -> int:
    """The `Arithmetic` of a matrix product or convolution."""
    return next((kind for pattern, kind in ARITHMETIC if pattern.search(name)), Arithmetic.UNTOLD)
