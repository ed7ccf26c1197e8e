"""The parts of a training script: a small network and its loss, optimizers, batches, and the loop of steps."""

from dataclasses import dataclass

from simulator.simulated_machine import Kernel, Run
from simulator.torch_calls import ADD, FILL, GEMM, GRADIENT_GEMM, Tensor, Torch, elementwise, reduction

RELU = elementwise("launch_clamp_scalar<c10::BFloat16>")
RELU_BACKWARD = elementwise("threshold_kernel_impl<c10::BFloat16>")
SOFTMAX = Kernel("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, c10::BFloat16>")
SOFTMAX_BACKWARD = Kernel("void at::native::(anonymous namespace)::cunn_SoftMaxBackward<8, c10::BFloat16, float>")
LOSS = Kernel("void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<c10::BFloat16, float>")
LOSS_BACKWARD = Kernel("void at::native::(anonymous namespace)::nll_loss_backward_reduce_cuda_kernel_2d<c10::BFloat16>")
FUSED_ADAM = Kernel(
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4> >"
)
MULTI_TENSOR = Kernel("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<1> >")
SINGLE_STEPS = ("mul_", "lerp_", "mul_", "addcmul_", "sqrt", "div", "add_", "addcdiv_")
"""The operators of one tensor's AdamW step when it is taken alone."""
MULTI_STEPS = ("add_", "mul_", "lerp_", "mul_", "addcmul_", "sqrt", "div_", "add_", "addcdiv_")

GATHER_US, WALK_US = 3.0, 0.65
"""What any AdamW takes for each parameter to collect it, and to go over it in one multi-tensor call. A fused one then
leaves about a third of what the `foreach` one takes for many parameters, as reports have it."""


@dataclass(frozen=True)
class Net:
    """Linear layers with ReLU between them; `linear_us` and `relu_us` are a kernel's times in the forward pass.

    `python_us` is what each layer's own Python takes before it calls anything.
    """

    layers: int = 6
    width: int = 1024
    batch: int = 64
    linear_us: float = 60
    relu_us: float = 14
    python_us: float = 0
    gemm: Kernel = GEMM
    gradient_gemm: Kernel = GRADIENT_GEMM

    @property
    def input(self) -> Tensor:
        return Tensor((self.batch, self.width))

    @property
    def weight(self) -> Tensor:
        return Tensor((self.width, self.width))

    @property
    def parameters(self) -> list[Tensor]:
        return [self.weight] * self.layers

    def forward(self, t: Torch, per_layer=None) -> Run:
        """The forward pass; `per_layer(t, layer)` runs after each layer."""
        with t.module("Net_0", "model.py(31): forward"):
            for layer in range(self.layers):
                t.at(34).think(self.python_us)
                with (
                    t.module(f"Linear_{layer}", "torch/nn/modules/linear.py(130): forward"),
                    t.at(134).builtin("linear"),
                ):
                    yield from self._linear(t)
                yield from t.at(36).method(
                    "relu of type object",
                    "aten::relu",
                    self.input,
                    kernel=RELU,
                    us=self.relu_us,
                    makes=self.input,
                    node="ReluBackward0",
                    gradient=self._relu_backward,
                )
                if per_layer is not None:
                    yield from per_layer(t.at(38), layer)

    def _linear(self, t: Torch) -> Run:
        with t.op("aten::linear", self.input, self.weight, None):
            with (
                t.op("aten::t", self.weight, node="TBackward0", gradient=transposed, parameters=(self.weight,)),
                t.op("aten::transpose", self.weight, 0, 1),
            ):
                pass
            with t.op("aten::matmul", self.input, self.weight):
                yield from t.run(
                    "aten::mm",
                    self.input,
                    self.weight,
                    kernel=self.gemm,
                    us=self.linear_us,
                    makes=self.input,
                    node="MmBackward0",
                    gradient=self._linear_backward,
                )

    def _linear_backward(self, t: Torch) -> Run:
        for _ in range(2):
            yield from t.run(
                "aten::mm", self.input, self.weight, kernel=self.gradient_gemm, us=self.linear_us, makes=self.input
            )

    def _relu_backward(self, t: Torch) -> Run:
        kernel, us = RELU_BACKWARD, self.relu_us
        yield from t.run("aten::threshold_backward", self.input, self.input, 0, kernel=kernel, us=us, makes=self.input)

    def loss(self, t: Torch) -> Run:
        """Cross entropy of the last output."""
        logits, labels = self.input, Tensor((self.batch,), "long int")
        with (
            t.frame("torch/nn/functional.py(3478): cross_entropy"),
            t.at(3519).builtin("cross_entropy_loss"),
            t.op("aten::cross_entropy_loss", logits, labels, None, 1, -100, 0.0),
        ):
            yield from t.run(
                "aten::_log_softmax",
                logits,
                1,
                False,
                kernel=SOFTMAX,
                us=6,
                makes=logits,
                node="LogSoftmaxBackward0",
                gradient=softmax_backward,
            )
            yield from t.run(
                "aten::nll_loss_forward",
                logits,
                labels,
                None,
                1,
                -100,
                kernel=LOSS,
                us=4,
                node="NllLossBackward0",
                gradient=loss_backward,
            )


def transposed(t: Torch) -> Run:
    with t.op("aten::t", Tensor((1024, 1024))):
        yield from ()


def softmax_backward(t: Torch) -> Run:
    yield from t.run("aten::_log_softmax_backward_data", Tensor((64, 1024)), kernel=SOFTMAX_BACKWARD, us=7)


def loss_backward(t: Torch) -> Run:
    yield from t.run("aten::nll_loss_backward", Tensor((64, 1024)), kernel=LOSS_BACKWARD, us=4)


@dataclass(frozen=True)
class AdamW:
    """`torch.optim.AdamW`; `form` is `fused`, `foreach` or `single`."""

    parameters: list[Tensor]
    form: str = "fused"
    fused_us: float = 40
    set_to_none: bool = True

    def zero_grad(self, t: Torch) -> Run:
        t.session.gradients_kept = not self.set_to_none
        with (
            t.frame("torch/optim/optimizer.py(1048): zero_grad"),
            t.at(1066).annotation("Optimizer.zero_grad#AdamW.zero_grad"),
        ):
            for parameter in self.parameters:
                t.think(0.6)
                if not self.set_to_none:
                    with t.at(1088).builtin("zero_ of Tensor object"), t.op("aten::zero_", parameter):
                        yield from t.host.fill(parameter.nbytes)

    def step(self, t: Torch) -> Run:
        with (
            t.frame("torch/optim/optimizer.py(528): wrapper"),
            t.at(556).annotation("Optimizer.step#AdamW.step"),
            t.frame("torch/optim/adam.py(214): step"),
        ):
            with t.at(250).frame("torch/optim/adam.py(147): _init_group"):
                t.think(GATHER_US * len(self.parameters))
            with t.at(268).frame("torch/optim/adam.py(902): adam"):
                yield from getattr(self, f"_{self.form}")(t)

    def _fused(self, t: Torch) -> Run:
        with t.at(973).frame("torch/optim/adam.py(802): _fused_adam"):
            t.think(12)
            steps = [Tensor((), "float")] * len(self.parameters)
            yield from t.at(877).method(
                "_foreach_add_ of type object", "aten::_foreach_add_", steps, 1, kernel=MULTI_TENSOR, us=3
            )
            yield from t.at(881).method(
                "_fused_adamw_ of type object",
                "aten::_fused_adamw_",
                self.parameters,
                self.parameters,
                kernel=FUSED_ADAM,
                us=self.fused_us,
            )

    def _foreach(self, t: Torch) -> Run:
        with t.at(973).frame("torch/optim/adam.py(553): _multi_tensor_adam"):
            for number, name in enumerate(MULTI_STEPS):
                t.at(640 + 4 * number).think(WALK_US * len(self.parameters))
                yield from t.method(
                    f"_foreach_{name} of type object",
                    f"aten::_foreach_{name}",
                    self.parameters,
                    kernel=MULTI_TENSOR,
                    us=self.fused_us / 6,
                )

    def _single(self, t: Torch) -> Run:
        with t.at(973).frame("torch/optim/adam.py(347): _single_tensor_adam"):
            for parameter in self.parameters:
                t.at(381).think(3.0)
                for number, name in enumerate(SINGLE_STEPS):
                    line, us = 432 + 6 * number, 2.2 + self.fused_us / len(self.parameters) / 10
                    yield from t.at(line).method(
                        f"{name} of Tensor object", f"aten::{name}", parameter, parameter, kernel=ADD, us=us
                    )


@dataclass
class Loader:
    """A `DataLoader`: `workers` processes each take `batch_us` to make a batch, a few batches ahead of the loop.

    They were started one after another, before the recording: the first batch is there when the loop asks for it.

    Without workers the loop makes the batch itself, `items` calls of `__getitem__` and a collation.
    """

    workers: int = 4
    batch_us: float = 2_000
    prefetch: int = 2
    items: int = 4
    pin_memory: bool = True

    def __post_init__(self) -> None:
        self._taken = 0
        self._asked_ns: list[int] = []
        self._worker_free_ns = [0] * self.workers

    def ready_ns(self, batch: int, now_ns: int) -> int:
        """When the workers have made this batch, asked for in order."""
        if not self._asked_ns:
            batch_ns = round(self.batch_us * 1_000)
            self._asked_ns = [now_ns - batch_ns] * (self.workers * self.prefetch)
            self._worker_free_ns = [
                now_ns - batch_ns + number * batch_ns // self.workers for number in range(self.workers)
            ]
        worker = batch % self.workers
        start = max(self._asked_ns[batch], self._worker_free_ns[worker])
        self._worker_free_ns[worker] = start + round(self.batch_us * 1_000)
        return self._worker_free_ns[worker]

    def next(self, t: Torch) -> Run:
        """`next(iterator)`."""
        kind = "_MultiProcessing" if self.workers else "_SingleProcess"
        with (
            t.frame("torch/utils/data/dataloader.py(720): __next__"),
            t.at(733).annotation(f"enumerate(DataLoader)#{kind}DataLoaderIter.__next__"),
        ):
            t.think(8)
            if self.workers:
                self._wait(t)
            else:
                yield from self._make(t)
            t.think(6)

    def _wait(self, t: Torch) -> None:
        with t.at(741).frame("torch/utils/data/dataloader.py(1470): _next_data"):
            with (
                t.at(1482).frame("torch/utils/data/dataloader.py(1435): _get_data"),
                t.at(1448).frame("queue.py(154): get"),
                t.at(171).frame("threading.py(295): wait"),
                t.at(327).builtin("acquire of _thread.lock object"),
            ):
                t.host.until(self.ready_ns(self._taken, t.host.now))
            self._taken += 1
            self._asked_ns.append(t.host.now)

    def _make(self, t: Torch) -> Run:
        image, each = Tensor((3, 224, 224), "float"), self.batch_us / (self.items + 1)
        with (
            t.at(741).frame("torch/utils/data/dataloader.py(783): _next_data"),
            t.at(787).frame("torch/utils/data/_utils/fetch.py(49): fetch"),
        ):
            for _ in range(self.items):
                with t.at(54).frame("dataset.py(41): __getitem__"):
                    with t.at(44).frame("PIL/Image.py(3456): open"):
                        t.think(each * 0.1)
                    with t.at(45).frame("torchvision/transforms/transforms.py(94): __call__"):
                        t.think(each * 0.6)
                        with t.at(95).builtin("div of Tensor object"), t.op("aten::div", image, 255):
                            t.think(each * 0.3)
            with (
                t.at(55).frame("torch/utils/data/_utils/collate.py(346): default_collate"),
                t.at(176).builtin("stack of type object"),
                t.op("aten::stack", [image] * self.items, 0),
            ):
                t.think(each)
        yield from ()


def average(t: Torch, tensor: Tensor, us: float) -> Run:
    """`tensor.mean()`."""
    yield from t.method("mean of Tensor object", "aten::mean", tensor, kernel=reduction("MeanOps<float>"), us=us)


def loop(t: Torch, steps: int, body) -> Run:
    """`train.py`: the loop of steps under the profiler, which marks them; `body(t, step)` is one step."""
    marks: list[tuple[int, int]] = []
    with (
        t.frame("train.py(151): <module>"),
        t.at(152).frame("train.py(128): main"),
        t.at(141).frame("train.py(96): train_epoch"),
    ):
        start = t.host.now
        for step in range(steps):
            yield from body(t, step)
            t.session.allocator.give_back()
            with t.at(124).frame("torch/profiler/profiler.py(1236): step"):
                t.think(18)
                marks.append((start, t.host.now))
                t.think(6)
                start = t.host.now
                t.think(9)
        t.think(30)
    t.session.marks = marks
    t.think(40)
    yield from t.host.synchronize(None)


__all__ = ["FILL", "AdamW", "Loader", "Net", "average", "loop"]
