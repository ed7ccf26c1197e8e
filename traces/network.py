"""A small ResNet as the operators, frames and kernels that PyTorch makes of it."""

from dataclasses import dataclass

from machine import Machine, Span, us

ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, {}, std::array<char*, 2ul> >(int)"
FPROP = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize{}_stage4_warpsize2x2x1_g1_kernel"

FEATURES = [32, 64, 56, 56]


@dataclass(frozen=True)
class Layer:
    """One module: its operators from the outside in, its kernel, its backward node and kernels, its shapes."""

    module: str
    source: tuple[str, int]
    operators: tuple[str, ...]
    kernel: tuple[str, int]
    node: str
    backward_operator: str
    backward_kernels: tuple[tuple[str, int], ...]
    dims: list[list[int]]


def convolution(ns: int, tile: str) -> Layer:
    """A 3x3 convolution whose forward kernel runs for `ns`."""
    fprop = FPROP.format(tile)
    return Layer(
        "Conv2d", ("torch/nn/modules/conv.py", 554), ("aten::conv2d", "aten::convolution", "aten::cudnn_convolution"),
        (fprop, ns), "ConvolutionBackward0", "aten::convolution_backward",
        ((fprop.replace("fprop", "dgrad"), ns), (fprop.replace("fprop", "wgrad"), ns + ns // 8)),
        [FEATURES, [64, 64, 3, 3], [], [], [], [], []],
    )  # fmt: skip


def batch_norm(ns: int) -> Layer:
    """A batch normalisation."""
    return Layer(
        "BatchNorm2d", ("torch/nn/modules/batchnorm.py", 175), ("aten::batch_norm", "aten::cudnn_batch_norm"),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>", ns),
        "CudnnBatchNormBackward0", "aten::cudnn_batch_norm_backward",
        (("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>", ns + ns // 2),),
        [FEATURES, [64], [64], [64], [64], [], [], [], []],
    )  # fmt: skip


def relu(ns: int) -> Layer:
    """A rectifier."""
    return Layer(
        "ReLU", ("torch/nn/modules/activation.py", 143), ("aten::relu_", "aten::clamp_min_"),
        (ELEMENTWISE.format("at::native::launch_clamp_scalar"), ns),
        "ReluBackward0", "aten::threshold_backward", ((ELEMENTWISE.format("at::native::threshold_kernel_impl"), ns),),
        [FEATURES],
    )  # fmt: skip


def linear(ns: int) -> Layer:
    """The head, and the loss with it."""
    return Layer(
        "Linear", ("torch/nn/modules/linear.py", 134), ("aten::linear", "aten::addmm"),
        ("ampere_sgemm_32x32_sliced1x4_tn", ns), "AddmmBackward0", "aten::mm",
        (("ampere_sgemm_32x128_nn", ns), ("ampere_sgemm_32x32_sliced1x4_nt", ns)),
        [[32, 64], [10, 64], [10]],
    )  # fmt: skip


def small_resnet() -> list[Layer]:
    """A stem, eight blocks of convolution, normalisation and rectifier, and a head."""
    layers = [convolution(us(412.128), "256x64x16"), batch_norm(us(148.32)), relu(us(96.416))]
    for block in range(8):
        layers += [
            convolution(us(231.744) - 3_104 * block, "128x128x16"),
            batch_norm(us(61.152)),
            relu(us(38.944)),
        ]
    return [*layers, linear(us(18.56))]


def forward(m: Machine, layers: list[Layer], *, file: str, line: int) -> list[tuple[Layer, Span]]:
    """Run the layers forward under `file(line): forward`; returns what the backward pass needs."""
    tape: list[tuple[Layer, Span]] = []
    with m.module("ResNet_0", 0), m.frame(file, line, "forward"):
        for number, layer in enumerate(layers):
            with m.module(f"{layer.module}_{number}", number), m.frame(*layer.source, "forward"):
                tape.append((layer, nested_forward(m, layer, layer.operators)))
    return tape


def nested_forward(m: Machine, layer: Layer, operators: tuple[str, ...]) -> Span:
    """The operators of a layer one in the other; returns the one that autograd records."""
    with m.op(operators[0], dims=layer.dims) as outer:
        if len(operators) > 1:
            recorded = nested_forward(m, layer, operators[1:])
        else:
            m.launch(*layer.kernel)
            recorded = m.differentiable(outer)
    return recorded


def backward(m: Machine, tape: list[tuple[Layer, Span]]) -> None:
    """Run the backward nodes of `tape`, last first."""
    for layer, recorded in reversed(tape):
        with m.backward_of(recorded, layer.node), m.op(layer.backward_operator, forward=recorded):
            for kernel, ns in layer.backward_kernels:
                m.launch(kernel, ns)
