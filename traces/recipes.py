"""What each trace of this folder plays, and what is known of it by plain arithmetic."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from machine import KERNEL_GAP_NS, Machine, ms, us
from network import ELEMENTWISE, FPROP, backward, forward, small_resnet

CONV = FPROP.format("128x128x16")
ADD = ELEMENTWISE.format("at::native::CUDAFunctor_add<float>")
GEMM = "ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_tn"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@dataclass
class Scene:
    """A played recipe.

    `by_hand` holds figures of the device (a state or a cause, nanoseconds) that follow from the recipe by arithmetic a
    reader can do in the head; `make.py` checks that the ledger agrees. `replays` are the stretches in which a graph
    replayed unrecorded kernels, `tops` the causes whose first place is told, `quality` the codes a reader must report,
    `cut_at` the share of events after which the file breaks off.
    """

    machine: Machine
    by_hand: dict[str, int] = field(default_factory=dict[str, int])
    tops: tuple[str, ...] = ()
    quality: tuple[str, ...] = ()
    manner: str = "modern"
    replays: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    cut_at: float | None = None
    top_level: dict[str, Any] = field(default_factory=dict[str, Any])


def training_step() -> Scene:
    """Four steps of a small ResNet: a slow first batch, a pageable copy, a check of the loss, SGD tensor by tensor."""
    m = Machine()
    waits = [ms(41), ms(6.2), ms(5.4), ms(7.1)]
    with m.frame("train.py", 143, "<module>"), m.frame("train.py", 118, "main"), m.frame("train.py", 97, "train_epoch"):
        for number, wait in enumerate(waits, 2):
            m.profiler_step(f"ProfilerStep#{number}")
            with m.loader(total_ns=wait), m.frame("queue.py", 154, "get"), m.builtin("<built-in method acquire>"):
                m.run(wait - us(90))
            with m.frame("train.py", 61, "step"):
                to_device(m, nbytes=32 * 3 * 224 * 224 * 4, ns=us(1_946.5), pinned=False)
                with m.frame("train.py", 74, "mixup"):
                    m.run(us(2_380))
                tape = forward(m, small_resnet(), file="model.py", line=48)
                with m.backward_thread():
                    backward(m, tape)
                with m.frame("train.py", 83, "check_finite"):
                    m.item()
                sgd(m, parameters=42)
            with m.frame("train.py", 104, "log"):
                m.run(us(640))
        m.profiler_step(None)
    return Scene(m, by_hand={"dataloader": sum(waits)}, tops=("python", "sync", "copy_call", "framework"))


def loader_bound() -> Scene:
    """Three steps that each wait 41 ms for one picture after another to be decoded, with the GPU drained before."""
    m = Machine()
    with m.frame("finetune.py", 52, "<module>"), m.frame("finetune.py", 30, "main"):
        for number in range(3):
            m.profiler_step(f"ProfilerStep#{number}")
            with m.loader("_SingleProcessDataLoaderIter", total_ns=ms(41)):
                for _ in range(4):
                    with m.frame("pictures.py", 23, "__getitem__"):
                        m.run(ms(10))
            with m.frame("finetune.py", 41, "step"):
                to_device(m, nbytes=4 * 3 * 224 * 224 * 4, ns=us(310), pinned=True)
                convolve(m, times=12, ns=us(420))
                m.item()
        m.profiler_step(None)
    return Scene(m, by_hand={"dataloader": 3 * ms(41), "compute": 3 * 12 * us(420)}, tops=("sync",))


def launch_bound() -> Scene:
    """Three steps of 120 kernels of 1.5 us each, every one of which costs the host 21 us; recorded without stacks."""
    m = Machine(with_stack=False)
    for number in range(3):
        m.mark(f"ProfilerStep#{number}")
        for _ in range(120):
            with m.op("aten::add", lead=15_040):
                m.launch(ADD, 1_504)
        m.synchronize("DeviceSynchronize")
    m.mark(None)
    return Scene(m, by_hand={"compute": 3 * 120 * 1_504, "transfer": 0})


def sync_item() -> Scene:
    """Three steps that ask for a number after each of ten layers; the host wakes 60 us after the GPU is done."""
    m = Machine()
    with m.frame("solver.py", 66, "<module>"), m.frame("solver.py", 40, "iterate"):
        for number in range(3):
            m.profiler_step(f"ProfilerStep#{number}")
            for _ in range(10):
                convolve(m, times=1, ns=us(200))
                with m.frame("solver.py", 19, "converged"):
                    m.item(wake_up=us(60))
        m.profiler_step(None)
    return Scene(m, by_hand={"sync": 3 * 10 * us(60), "compute": 30 * us(200)}, tops=("sync",))


def no_steps_inference() -> Scene:
    """Eight tokens of fourteen kernels each, without step marks or stacks; the window is that of the GPU's work."""
    m = Machine(with_stack=False)
    with m.op("aten::zeros"):
        m.memset(4_194_304, us(12))
    for _ in range(8):
        with m.op("aten::embedding"):
            m.launch(
                "void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::Half, long, unsigned int>", us(3)
            )
        for layer in range(4):
            with m.op("aten::linear"), m.op("aten::addmm"):
                m.launch(GEMM, us(60 + 10 * layer))
            with m.op("aten::scaled_dot_product_attention"):
                m.launch("flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64, 64, 256, 4> >", us(25))
            with m.op("aten::add_"):
                m.launch(ADD, us(4))
        with m.op("aten::argmax"):
            m.launch("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::Half> >", us(9))
        m.run(us(150))
    gemms = 60 + 70 + 80 + 90
    return Scene(m, by_hand={"compute": 8 * us(gemms + 4 * 29 + 3 + 9), "memory": us(12)})


def gpu_not_recorded() -> Scene:
    """Two steps that launch kernels of which the file holds none: GPU work that was not recorded, not an idle GPU."""
    m = Machine()
    with m.frame("train.py", 90, "<module>"), m.frame("train.py", 61, "step"):
        for number in range(2):
            m.profiler_step(f"ProfilerStep#{number}")
            convolve(m, times=20, ns=us(50))
            m.synchronize("DeviceSynchronize")
        m.profiler_step(None)
    m.activities.clear()
    m.stream_ready.clear()
    return Scene(m, quality=("gpu-not-recorded",))


def cpu_only() -> Scene:
    """Three steps on the CPU: each 9 ms of data loading, 4 ms of operators and some 2 ms of Python."""
    m = Machine(runtime="")
    with m.frame("train_cpu.py", 44, "<module>"), m.frame("train_cpu.py", 21, "main"):
        for number in range(3):
            m.profiler_step(f"ProfilerStep#{number}")
            with m.loader("_SingleProcessDataLoaderIter", total_ns=ms(9)), m.frame("pictures.py", 23, "__getitem__"):
                m.run(ms(8.5))
            with m.frame("train_cpu.py", 30, "step"):
                for _ in range(8):
                    with (
                        m.op("aten::linear", lead=us(100), tail=us(20)),
                        m.op("aten::addmm", lead=us(370), tail=us(10)),
                    ):
                        pass
                m.run(ms(2))
        m.profiler_step(None)
    operators = 3 * 8 * us(500)
    by_hand = {"dataloader_ns": 3 * ms(9), "operator_ns": operators, "cpu_active_ns": operators, "uncovered_ns": 0}
    return Scene(m, by_hand=by_hand)


def rocm_small() -> Scene:
    """Two steps on HIP: the default stream is 0, the device is 2, blocking copies, integers as strings."""
    m = Machine(runtime="hip", device=2, stream=0, with_stack=False)
    for number in range(2):
        m.mark(f"ProfilerStep#{number}")
        to_device(m, nbytes=616, ns=us(5), pinned=False)
        for _ in range(6):
            with m.op("aten::mm"):
                m.launch("Cijk_Ailk_Bljk_SB_MT64x64x16_MI32x32x2x1_SN_GRVW4_GSU1_LRVW4", us(85))
        m.item()
    m.mark(None)
    return Scene(m, by_hand={"compute": 12 * us(85), "transfer": 2 * (us(5) + 1_504)}, manner="rocm")


def graph_replay_missing() -> Scene:
    """Three CUDA graph replays of 4 ms whose kernels the profiler missed: that time is unknown, not idle."""
    m = Machine()
    replays: list[tuple[int, int]] = []
    with m.frame("serve.py", 77, "<module>"), m.frame("serve.py", 58, "generate"):
        for number in range(3):
            m.profiler_step(f"ProfilerStep#{number}")
            to_device(m, nbytes=4_096, ns=us(3), pinned=True)
            m.run(ms(1))
            with m.builtin("<built-in method replay of CUDAGraph object at 0x7f2c81a4f3d0>"):
                with m.call("GraphLaunch", "launch", lead=us(30)) as replay:
                    pass
                m.stream_ready[m.device, m.stream] = m.clock + ms(4)
                m.run(us(100))
                m.synchronize()
            replays.append((replay.start, m.spans[-1].end))
            with m.frame("serve.py", 33, "sample"):
                with m.op("aten::argmax"):
                    m.launch("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >", us(18))
                m.item()
        m.profiler_step(None)
    each = us(30) + ms(4) + 2_048
    return Scene(m, by_hand={"unknown": 3 * each}, quality=("graph-replay-without-kernels",), replays=replays)


def legacy_1_8() -> Scene:
    """Two steps in the words of torch 1.8: `Kernel`, `Runtime`, `Operator`, whole microseconds, steps as operators."""
    m = Machine(start_ns=1_610_366_662_254_282_000, quantum_ns=1_000, with_stack=False)
    for number in range(2):
        m.mark(f"ProfilerStep#{number}")
        with m.loader("_SingleProcessDataLoaderIter", total_ns=ms(12)):
            m.run(ms(11))
        to_device(m, nbytes=19_267_584, ns=us(1_947), pinned=False)
        for layer in range(8):
            with m.op("aten::conv2d"), m.op("aten::cudnn_convolution"):
                m.launch("implicit_convolve_sgemm", us(390 + layer))
        m.item()
    m.mark(None)
    return Scene(m, by_hand={"dataloader": 2 * ms(12), "compute": 2 * (8 * us(390) + us(28))}, manner="legacy")


def truncated() -> Scene:
    """`loader_bound` again, broken off in the middle of an event of the last step's GPU work."""
    scene = loader_bound()
    return Scene(scene.machine, by_hand={"dataloader": 3 * ms(41)}, quality=("truncated-json",), cut_at=0.93)


def two_streams_comm() -> Scene:
    """Three data-parallel steps: the second bucket's all-reduce of 1.8 ms is exposed, the first's of 1.2 ms hides.

    It hides behind four kernels of 300 us, but for the four gaps between them.
    """
    m = Machine(with_stack=False)
    for number in range(3):
        m.mark(f"ProfilerStep#{number}")
        for _ in range(10):
            with m.op("aten::conv2d"), m.op("aten::cudnn_convolution"):
                last = m.launch(CONV, us(300))
        all_reduce(m, ms(1.2), not_before=m.clock, bucket=6_553_600)
        for _ in range(10):
            with m.op("aten::convolution_backward"):
                last = m.launch(CONV.replace("fprop", "dgrad"), us(300))
        everything = all_reduce(m, ms(1.8), not_before=last.end + us(6), bucket=9_437_184)
        with m.op("aten::_foreach_add_"):
            m.launch(ADD.replace("vectorized", "multi_tensor"), us(90), not_before=everything.end + us(5))
        m.synchronize("DeviceSynchronize")
    m.mark(None)
    by_hand = {"communication": 3 * (ms(1.8) + 4 * KERNEL_GAP_NS), "compute": 3 * (20 * us(300) + us(90))}
    ranks = {"backend": "nccl", "rank": 3, "world_size": 8, "pg_count": 1, "nccl_version": "2.27.3"}
    return Scene(m, by_hand=by_hand, top_level={"distributedInfo": ranks})


RECIPES: dict[str, Callable[[], Scene]] = {
    recipe.__name__: recipe
    for recipe in (
        training_step, loader_bound, launch_bound, sync_item, no_steps_inference, gpu_not_recorded, cpu_only,
        rocm_small, graph_replay_missing, legacy_1_8, truncated, two_streams_comm,
    )
}  # fmt: skip


# Pieces of scripts ----------------------------------------------------------------------------------------------------


def to_device(m: Machine, *, nbytes: int, ns: int, pinned: bool) -> None:
    """`tensor.to("cuda")`."""
    with m.op("aten::to"), m.op("aten::_to_copy"), m.op("aten::copy_"):
        m.copy_in(nbytes, ns, pinned=pinned)


def convolve(m: Machine, *, times: int, ns: int) -> None:
    """Some convolutions, one kernel each."""
    for _ in range(times):
        with m.op("aten::conv2d"), m.op("aten::convolution"), m.op("aten::cudnn_convolution"):
            m.launch(CONV, ns)


def sgd(m: Machine, *, parameters: int) -> None:
    """`SGD.step()` with `foreach=False` and momentum: four small kernels a parameter, each launched by Python."""
    with (
        m.frame("torch/optim/optimizer.py", 517, "wrapper"),
        m.annotation("Optimizer.step#SGD.step"),
        m.frame("torch/optim/sgd.py", 126, "step"),
        m.frame("torch/optim/sgd.py", 329, "_single_tensor_sgd"),
    ):
        for _ in range(parameters):
            for name in ("aten::add", "aten::mul_", "aten::add_", "aten::add_"):
                m.run(us(6.4))
                with m.op(name, lead=us(4.6), tail=us(1.1)):
                    m.launch(ADD, us(2.4))


def all_reduce(m: Machine, ns: int, *, not_before: int, bucket: int) -> Any:
    """One bucket of gradients over all ranks, on a stream of its own."""
    with m.op("c10d::allreduce_"), m.annotation("nccl:all_reduce"):
        return m.launch(
            NCCL, ns, call="LaunchKernelExC", work="communication", stream=20, not_before=not_before,
            **{"Collective name": "allreduce", "In msg nelems": bucket, "Out msg nelems": bucket, "Group size": 8,
               "dtype": "Float", "In split size": [], "Out split size": [], "Process Group Name": "0"},
        )  # fmt: skip
