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
    # Inductor's names list every operator around the kernel: only the template counts.
    (re.compile(r"^triton_tem_fused\w*flex_attention"), Sort.ATTENTION),
    (re.compile(r"^triton_(tem_|mm|bmm)"), Sort.GEMM),
    (re.compile(r"^triton_poi_"), Sort.ELEMENTWISE),
    (re.compile(r"^triton_(red|per)_"), Sort.REDUCTION),
    (re.compile(r"multi_tensor_apply|FusedOptimizer|adagrad|AdamFunctor"), Sort.OPTIMIZER),
    (
        re.compile(
            r"flash_(fwd|bwd)|FlashAttn(Fwd|Bwd)|fmha|attn_(fwd|bwd)|paged_attention|unified_attention|cudnn.*sdpa|mha_"
        ),
        Sort.ATTENTION,
    ),
    (re.compile(r"nchwToNhwc|nhwcToNchw|genericTranspose_kernel|batched_transpose"), Sort.LAYOUT),
    (
        re.compile(
            r"fprop|dgrad|wgrad|implicit_?(convolve|gemm)|scudnn|winograd|explicit_convolve|conv_depthwise|slow_conv"
            r"|grouped_conv|igemm_(fwd|bwd|wrw)|conv2d|cudnn_convolution|im2(d2)?col|col2im|miopen\w*conv",
            re.IGNORECASE,
        ),
        Sort.CONVOLUTION,
    ),
    (
        re.compile(
            r"layer_?norm|rms_?norm|batch_?norm|bn_(fw|bw)|group_?norm|RowwiseMoments|Grad(Input)?GammaBeta"
            r"|GammaBetaBackward|Compute(Backward)?FusedParams|ComputeInternalGradients",
            re.IGNORECASE,
        ),
        Sort.NORMALISATION,
    ),
    # Types of arguments name the library too: fbgemm_gpu::..., cutlass::bfloat16_t, cublasGemvTensor.
    (re.compile(r"^(void )?(dot_kernel|reduce_1Block_kernel)"), Sort.REDUCTION),
    (
        re.compile(
            r"(?<!fb)gemm|(?<!cublas)gemv|cutlass\w*::Kernel|^Cijk_|nvjet|_matmul|^bmm_|wmma|xmma", re.IGNORECASE
        ),
        Sort.GEMM,
    ),
    (re.compile(r"softmax", re.IGNORECASE), Sort.SOFTMAX),
    (re.compile(r"FillFunctor"), Sort.FILL),
    (re.compile(r"direct_copy_kernel|copy_kernel_cuda|CatArrayBatchedCopy|copy_device_to_device"), Sort.COPY),
    (re.compile(r"elementwise_kernel"), Sort.ELEMENTWISE),
    (re.compile(r"reduce_kernel"), Sort.REDUCTION),
)
"""The first pattern found in a name decides."""

TENSILE = r"^Cijk_[A-Z][a-z]{3}_[A-Z][a-z]{3}_"
"""How AMD's products begin; the types follow."""

ARITHMETIC: tuple[tuple[re.Pattern[str], Arithmetic], ...] = (
    (re.compile(TENSILE + r"(DB|D_B)_"), Arithmetic.FP64),
    (re.compile(TENSILE + r"S_?M?X_"), Arithmetic.TF32),
    (re.compile(TENSILE + r"(SB|S_B|CB|C_B)_"), Arithmetic.FP32),
    (re.compile(TENSILE + r"[BHF]"), Arithmetic.HALF),
    (re.compile(r"^Cijk_"), Arithmetic.UNTOLD),
    (re.compile(r"^_ZN2ck.*?([I_]tt|DF16)"), Arithmetic.HALF),  # `t`: 16 bits of a bfloat16
    (re.compile(r"dgemm|f64f64|d884|double"), Arithmetic.FP64),
    (re.compile(r"fp16_(sgemm|scudnn)"), Arithmetic.FP32),  # only what is read and written is in half precision
    (re.compile(r"tf32|tensorop_s1688(?!.*f(p)?16)", re.IGNORECASE), Arithmetic.TF32),
    (re.compile(r"bf16|fp16|f16|half|hgemm|h16816|h884|h1688|BFloat16", re.IGNORECASE), Arithmetic.HALF),
    (re.compile(r"nvjet(_sm\d+)?_[htqo]|e4m3|e5m2|fp8|mxfp4|int8|i8816", re.IGNORECASE), Arithmetic.HALF),
    (
        re.compile(r"sgemm|scudnn|f32f32_f32f32_f32|ffma|simt_s|cgemm|gemm_f32|<float|float,|convolve_sgemm"),
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
