"""Bugs of compilation, of gradients and of what the device is told to do, and the same scripts without them."""

from dataclasses import dataclass, replace

from simulator.simulated_machine import Kernel, Run
from simulator.simulated_program import Pair
from simulator.torch_calls import Session, Tensor, Torch
from simulator.training_parts import Net
from simulator.training_script import Inference, Script, pair

FULL_PRECISION = Kernel(
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel",
    registers=160,
)
TF32 = Kernel(
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    registers=168,
)
CELL = Kernel("void at::native::(anonymous namespace)::kernel::lstm_cell_forward<c10::BFloat16, float, int, 1>")
RECURRENT = Kernel("RNN_blockPersist_fp_LSTM<__nv_bfloat16, __nv_bfloat16, float, 64, 1024>")
STAGING_STREAM = 21
COMPILED = "triton_poi_fused_add_mul_relu_0"


def with_anomaly(session: Session) -> None:
    session.anomaly = True


def without_anomaly(session: Session) -> None:
    session.anomaly = False


def compiled(*, recompiles: bool):
    """A function under `torch.compile`, called with a new length in every step."""

    def call(t: Torch, step: int) -> Run:
        with t.frame("torch/_dynamo/eval_frame.py(881): compile_wrapper"):
            with t.op("TorchDynamo Cache Lookup"):
                t.think(9)
            if not step or recompiles:
                translate(t, step)
            with t.op(f"Torch-Compiled Region: 0/{step if recompiles else 0}"):
                t.think(14)
                for number in range(3):
                    with t.op(f"{COMPILED}{number}"):
                        yield from t.host.launch(Kernel(f"{COMPILED}{number}"), 26_000)

    return call


def translate(t: Torch, step: int) -> None:
    """What Dynamo and Inductor leave in a trace."""
    with t.op("entire_frame_compile"), t.op("_compile.compile_inner (dynamo_timed)"):
        with t.op("compile_attempt_0 (dynamo_timed)"), t.op("bytecode_tracing (dynamo_timed)"):
            t.think(1_900)
        with t.op("backend_compile"), t.op("OutputGraph.call_user_compiler (dynamo_timed)"):
            with t.op("create_aot_dispatcher_function (dynamo_timed)"):
                t.think(1_500)
            with t.op("compile_fx_inner (dynamo_timed)"):
                t.think(3_200)
        with t.op("build_guards"):
            t.think(700)


def broken_graph(t: Torch, step: int) -> Run:
    """A compiled function with prints in it: every piece is looked up and entered on its own."""
    for piece in range(7):
        if not step:
            translate(t, step)
        if piece:
            with t.builtin("print"):
                t.think(40)
        yield from region(t, f"{piece}/0", kernels=1)


def whole_graph(t: Torch, step: int) -> Run:
    if not step:
        translate(t, step)
    yield from region(t, "0/0", kernels=7)


def region(t: Torch, number: str, *, kernels: int) -> Run:
    with t.op("TorchDynamo Cache Lookup"):
        t.think(16)
    with t.op("Pregraph bytecode"):
        t.think(7)
    with t.op(f"Torch-Compiled Region: {number}"):
        with t.op("AOTDispatcher Runtime Wrapper Prologue"):
            t.think(18)
        for _ in range(kernels):
            yield from t.run(COMPILED, Tensor((64, 1024)), kernel=Kernel(COMPILED), us=6)


LENGTHS = (512, 640, 512, 768, 896, 640)
"""The padded lengths of the first batches."""


def is_new(step: int) -> bool:
    """Whether no batch before had this step's length; after the first ones there is nothing new."""
    return step < len(LENGTHS) and LENGTHS[step] not in LENGTHS[:step]


def convolve_by_trial(t: Torch, step: int) -> Run:
    """A convolution under `cudnn.benchmark = True`: a new shape has every algorithm timed."""
    yield from convolve(t, step, trials=9 if is_new(step) else 0)


def convolve_at_once(t: Torch, step: int) -> Run:
    yield from convolve(t, step, trials=0)


def convolve(t: Torch, step: int, *, trials: int) -> Run:
    x, weight = Tensor((8, 64, LENGTHS[step % len(LENGTHS)], 8)), Tensor((64, 64, 3, 3))
    with (
        t.frame("torch/nn/modules/conv.py(552): forward"),
        t.at(553).builtin("conv2d of type object"),
        t.op("aten::conv2d", x, weight, None, [1, 1], [1, 1], [1, 1], 1),
        t.op("aten::cudnn_convolution", x, weight, [1, 1], [1, 1], [1, 1], 1, True, False, True),
    ):
        for number in range(trials):
            kernel = Kernel(f"sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tile{number}")
            yield from t.host.launch(kernel, 160_000 + 70_000 * number)
            yield from t.host.synchronize_event((yield from t.host.record()))
        yield from t.host.launch(Kernel("sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_tile_best"), 120_000)


def attend_by_plan(t: Torch, step: int) -> Run:
    """cuDNN's attention builds a plan for each new shape, on the host."""
    yield from attend(t, step, "cudnn", plan_us=5_200 if is_new(step) else 12)


def attend_by_flash(t: Torch, step: int) -> Run:
    yield from attend(t, step, "flash", plan_us=12)


def attend(t: Torch, step: int, backend: str, *, plan_us: float) -> Run:
    x = Tensor((8, 16, LENGTHS[step % len(LENGTHS)], 64))
    with (
        t.frame("attention.py(40): forward"),
        t.at(52).builtin("scaled_dot_product_attention"),
        t.op("aten::scaled_dot_product_attention", x, x, x, None, 0.0, True, None),
        t.op(f"aten::_scaled_dot_product_{backend}_attention", x, x, x, None, True, 0.0, True, False, None),
    ):
        t.think(plan_us)
        yield from t.host.launch(Kernel(f"{backend}_fprop_sm90_flash_kernel_64x128x64"), 90_000)


@dataclass(frozen=True)
class FloatNet(Net):
    """The network in float32."""

    @property
    def input(self) -> Tensor:
        return Tensor((self.batch, self.width), "float")

    @property
    def weight(self) -> Tensor:
        return Tensor((self.width, self.width), "float")


def cell_by_cell(t: Torch, number: int) -> Run:
    """`for x in sequence: h, c = cell(x, (h, c))`."""
    x, gates = Tensor((32, 256)), Tensor((1024, 256))
    with t.frame("decoder.py(17): forward"):
        for _ in range(24):
            with t.at(20).builtin("lstm_cell of type object"), t.op("aten::lstm_cell", x, [x, x], gates, gates):
                for _ in range(2):
                    with t.op("aten::linear", x, gates, None):
                        yield from t.run("aten::addmm", x, gates, kernel=Kernel("gemm_64x64_bf16"), us=3.6)
                yield from t.run("aten::_thnn_fused_lstm_cell", x, x, x, kernel=CELL, us=2.2)


def whole_sequence(t: Torch, number: int) -> Run:
    """`nn.LSTM` over the sequence."""
    x = Tensor((24, 32, 256))
    with (
        t.frame("decoder.py(17): forward"),
        t.at(20).frame("torch/nn/modules/rnn.py(1065): forward"),
        t.at(1124).builtin("lstm of type object"),
        t.op("aten::lstm", x, [x, x], [x]),
    ):
        yield from t.run("aten::_cudnn_rnn", x, [x], 4, kernel=RECURRENT, us=150)


def save_checkpoint(t: Torch, step: int) -> Run:
    """`torch.save(model.state_dict(), path)` every second step."""
    if step and step % 2 == 0:
        with (
            t.frame("checkpoint.py(11): save"),
            t.at(14).frame("torch/serialization.py(966): save"),
            t.at(1028).frame("torch/serialization.py(1268): _save"),
        ):
            for _ in range(4):
                yield from t.at(1310).to_host(Tensor((2048, 1024), "float"))
                with t.at(1318).builtin("write_record of torch._C.PyTorchFileWriter object"):
                    t.think(420)


def stage_checkpoint(t: Torch, step: int) -> Run:
    """The same tensors into a pinned buffer, on a stream of their own; another process writes them."""
    if step and step % 2 == 0:
        with t.frame("checkpoint.py(11): save"), t.at(14).frame("torch/distributed/checkpoint/staging.py(88): stage"):
            ready = yield from t.at(93).host.record()
            yield from t.at(94).host.wait_event(ready, STAGING_STREAM)
            for _ in range(4):
                yield from t.at(96).to_host(
                    Tensor((2048, 1024), "float"), pinned=True, non_blocking=True, stream=STAGING_STREAM
                )


def other_pairs() -> list[Pair]:
    full = FloatNet(linear_us=180, relu_us=14, gemm=FULL_PRECISION, gradient_gemm=FULL_PRECISION)
    return [
        pair(
            "recompile-steady-state",
            Script(before_forward=compiled(recompiles=True)),
            "one compilation for all lengths",
            before_forward=compiled(recompiles=False),
        ),
        pair(
            "graph-breaks",
            Script(net=Net(layers=3, linear_us=22, relu_us=6), before_forward=broken_graph),
            "one region is looked up and entered instead of seven, and nothing is printed",
            before_forward=whole_graph,
        ),
        pair(
            "cudnn-benchmark-varying-shapes",
            Script(before_forward=convolve_by_trial),
            "no trials of nine algorithms when a batch has a new shape",
            before_forward=convolve_at_once,
        ),
        pair(
            "sdpa-plan-rebuild",
            Script(before_forward=attend_by_plan),
            "an attention that needs no plan",
            before_forward=attend_by_flash,
        ),
        pair(
            "anomaly-mode-on",
            Script(net=Net(layers=5, linear_us=30, relu_us=8), prepare=with_anomaly),
            "no search for NaN, and no wait, after each backward operator; no stack kept for each forward one",
            prepare=without_anomaly,
        ),
        pair(
            "fp32-matmul-no-tf32",
            Script(net=full),
            "matrix products on the tensor cores take a third of the time",
            net=replace(full, linear_us=60, gemm=TF32, gradient_gemm=TF32),
        ),
        pair(
            "rnn-unfused",
            Inference(net=Net(layers=1), iterations=1, per_iteration=cell_by_cell),
            "one call over the sequence instead of 24 cells",
            per_iteration=whole_sequence,
        ),
        pair(
            "step-side-jobs",
            Script(after_step=save_checkpoint),
            "the loop neither waits for the tensors nor writes them",
            after_step=stage_checkpoint,
        ),
    ]
