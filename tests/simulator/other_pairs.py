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
    if step % 2:
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
    if step % 2:
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
