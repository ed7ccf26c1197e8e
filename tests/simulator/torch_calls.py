"""What PyTorch does on a simulated machine when a script calls it: frames, operators, launches, copies, gradients."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

from simulator.caching_allocator import CachingAllocator
from simulator.kineto_form import AUTOGRAD_THREAD, Flow
from simulator.simulated_machine import DEFAULT_STREAM, HostThread, Kernel, Machine, Run, Signal, Span

ITEM_BYTES = {"float": 4, "double": 8, "c10::BFloat16": 2, "c10::Half": 2, "long int": 8, "bool": 1, "int": 4}
DTYPE_CODES = {"float": 6, "double": 7, "c10::BFloat16": 15, "c10::Half": 5, "long int": 4, "bool": 11, "int": 3}
ENTER_OPERATOR_NS, LEAVE_OPERATOR_NS = 1_100, 500
ENTER_FRAME_NS, LEAVE_FRAME_NS = 350, 250
HAND_OVER_NS = 14_000
"""From one thread's word until another goes on."""


@dataclass(frozen=True)
class Tensor:
    shape: tuple[int, ...]
    dtype: str = "c10::BFloat16"

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * ITEM_BYTES[self.dtype]


SCALAR = Tensor((), "float")
FLAG = Tensor((), "bool")


def elementwise(functor: str) -> Kernel:
    name = f"at::native::{functor}, std::array<char*, 2ul>"
    return Kernel(f"void at::native::vectorized_elementwise_kernel<4, {name} >(int, {name})", (1024, 1, 1), (128, 1, 1))


def reduction(functor: str) -> Kernel:
    return Kernel(
        f"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, {functor}, unsigned int, float, 4> >",
        (64, 1, 1),
        (32, 16, 1),
    )


FILL = elementwise("FillFunctor<float>")
GEMM = Kernel(
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    block=(384, 1, 1),
    registers=168,
    shared_bytes=231_424,
)
GRADIENT_GEMM = Kernel(GEMM.name.replace("_tn_n_", "_nt_n_"), GEMM.grid, GEMM.block, 168, 231_424)


@dataclass
class Node:
    """A backward operator that a forward operator left on the tape, and the parameters whose gradient it ends with."""

    name: str
    sequence: int
    forward: Span
    gradient: Callable[["Torch"], Run]
    parameters: tuple[Tensor, ...] = ()


@dataclass
class Session:
    """What all threads of the process share, and the switches a script may have thrown."""

    machine: Machine
    allocator: CachingAllocator = field(default_factory=CachingAllocator)
    flows: list[Flow] = field(default_factory=list)
    tape: list[Node] = field(default_factory=list)
    sequence: int = 120
    external: int = 0
    python: int = 0
    modules: dict[str, int] = field(default_factory=dict)
    grad_enabled: bool = True
    anomaly: bool = False
    fill_new_memory: bool = False
    show_new_memory: bool = False
    items_pinned: bool = True
    """Whether `.item()` copies into a pinned buffer, as torch does by now, or into pageable memory."""
    gradients_kept: bool = False
    """Whether the gradients of the last step are still there, so that new ones are added to them."""
    gradient_hook: Callable[["Torch", Tensor], Run] | None = None
    marks: list[tuple[int, int]] = field(default_factory=list)
    """When each step began and ended on the host."""


def kind_of(value: Any) -> tuple[str, Any, str]:
    """Type, dimensions and text of an argument of an operator."""
    if value is None:
        return "", [], ""
    if isinstance(value, Tensor):
        return value.dtype, list(value.shape), ""
    if isinstance(value, list):
        if value and isinstance(value[0], Tensor):
            return "TensorList", [list(each.shape) for each in value], ""
        return "ScalarList", [], str(value)
    return "Scalar", [], str(value)


class Torch:
    """PyTorch as one thread calls it."""

    def __init__(self, session: Session, host: HostThread) -> None:
        self.session, self.host = session, host
        self._frames: list[tuple[str | None, int]] = []
        self._lines: list[list[Any]] = []

    @property
    def machine(self) -> Machine:
        return self.session.machine

    def think(self, us: float) -> None:
        """Plain Python in the innermost frame, in microseconds."""
        self.host.spend(round(us * 1_000))

    # Python ---------------------------------------------------------------------------------------------------------

    def at(self, line: int) -> "Torch":
        """From here on the innermost frame with a file is at this line."""
        self._lines[-1][1] = line
        return self

    @contextmanager
    def frame(self, name: str) -> Iterator[None]:
        """A Python function, `path/file.py(LINE): name`, or another name that the tracer gives."""
        args: dict[str, Any] = {}
        if self._lines:
            args["CallFrom"] = f"{self._lines[-1][0]}:{self._lines[-1][1]}"
        self.session.python += 1
        if name.startswith("nn.Module: "):
            args["Python module id"] = self.session.modules.setdefault(name, len(self.session.modules))
        args["Python parent id"] = self._frames[-1][1] if self._frames else None
        args["Python id"] = self.session.python
        file, _, rest = name.partition("(")
        written = rest[:1].isdigit()
        self._frames.append((name, self.session.python))
        if written:
            self._lines.append([file, int(rest.partition(")")[0])])
        self.host.begin("python_function", name, args)
        self.host.spend(ENTER_FRAME_NS)
        yield
        self.host.spend(LEAVE_FRAME_NS)
        self.host.end()
        self._frames.pop()
        if written:
            self._lines.pop()

    def builtin(self, what: str) -> Any:
        """The frame of a method of an extension: `item of Tensor object`, or of a function: `linear`."""
        if " of " not in what:
            return self.frame(f"<built-in function {what}>")
        address = 0x7F4B_0000_0000 + zlib.crc32(what.split(" of ")[1].encode()) // 16 * 16
        return self.frame(f"<built-in method {what} at {address:#x}>")

    @contextmanager
    def module(self, name: str, forward: str) -> Iterator[None]:
        """A call of an `nn.Module`, down to its `forward`."""
        with self.frame(f"nn.Module: {name}"), self.frame("torch/nn/modules/module.py(1787): _call_impl"):
            self.at(1798)
            with self.frame(forward):
                yield

    # Operators ------------------------------------------------------------------------------------------------------

    @contextmanager
    def annotation(self, name: str) -> Iterator[Span]:
        self.session.external += 1
        args = {"External id": self.session.external, "Record function id": 0}
        span = self.host.begin("user_annotation", name, args)
        self.host.spend(ENTER_OPERATOR_NS)
        yield span
        self.host.end()

    @contextmanager
    def op(
        self,
        name: str,
        *inputs: Any,
        node: str | None = None,
        gradient: Callable[["Torch"], Run] | None = None,
        parameters: tuple[Tensor, ...] = (),
        sequence: int | None = None,
    ) -> Iterator[Span]:
        """An operator. `node` is what it leaves on the tape for the way back, `sequence` the number of one of those."""
        session = self.session
        session.external += 1
        args: dict[str, Any] = {"External id": session.external, "Record function id": 0}
        taped = node is not None and session.grad_enabled
        if sequence is not None:
            args |= {"Sequence number": sequence, "Fwd thread id": 1}
        elif taped:
            args |= {"Sequence number": session.sequence, "Fwd thread id": 0}
        if inputs:
            types, dims, texts = zip(*map(kind_of, inputs), strict=True)
            args |= {"Concrete Inputs": list(texts), "Input type": list(types), "Input Dims": list(dims)}
        span = self.host.begin("cpu_op", name, args)
        if taped:
            session.tape.append(Node(node or "", session.sequence, span, gradient or no_gradient, parameters))
            session.sequence += 1
        self.host.spend(ENTER_OPERATOR_NS)
        if taped and session.anomaly:
            with self.frame("torch/fx/traceback.py(497): format_stack"):
                self.think(12)
        yield span
        self.host.spend(LEAVE_OPERATOR_NS)
        self.host.end()

    def run(
        self, name: str, *inputs: Any, kernel: Kernel, us: float, makes: Tensor | None = None, **options: Any
    ) -> Run:
        """An operator that launches one kernel of `us` microseconds, and maybe makes a new tensor."""
        stream = options.pop("stream", DEFAULT_STREAM)
        with self.op(name, *inputs, **options):
            if makes is not None:
                yield from self.new(makes)
            yield from self.host.launch(kernel, round(us * 1_000), stream=stream)

    def method(self, what: str, name: str, *inputs: Any, kernel: Kernel, us: float, **options: Any) -> Run:
        """The same, called as a method or function of an extension, which leaves a frame."""
        with self.builtin(what):
            yield from self.run(name, *inputs, kernel=kernel, us=us, **options)

    def new(self, tensor: Tensor) -> Run:
        """Memory for a new tensor on the device, filled first where the script asked for determinism."""
        session = self.session
        if not session.show_new_memory:
            yield from self._memory(tensor)
            return
        with self.op("aten::empty", list(tensor.shape), DTYPE_CODES[tensor.dtype], 0, "cuda:0", False, None):
            yield from self._memory(tensor)
            if session.fill_new_memory:
                with self.op("aten::fill_", tensor, "nan"):
                    yield from self.host.launch(FILL, 1_600 + tensor.nbytes * 1_000 // 1_500_000)

    def _memory(self, tensor: Tensor) -> Run:
        if not self.session.allocator.take(tensor.nbytes):
            yield from self.host.allocate()

    # Copies and waits -----------------------------------------------------------------------------------------------

    def to_device(
        self,
        tensor: Tensor,
        *,
        pinned: bool = False,
        non_blocking: bool = False,
        framed: bool = True,
        stream: int = DEFAULT_STREAM,
    ) -> Run:
        """`tensor.to("cuda")`."""
        if framed:
            with self.builtin("to of Tensor object"):
                yield from self.to_device(tensor, pinned=pinned, non_blocking=non_blocking, framed=False, stream=stream)
            return
        with self.op("aten::to", tensor, None, 0, "cuda:0", None, non_blocking, False, None):
            yield from self._copy(tensor, "HtoD", "cuda:0", pinned=pinned, non_blocking=non_blocking, stream=stream)

    def to_host(
        self, tensor: Tensor, *, pinned: bool = False, non_blocking: bool = False, stream: int = DEFAULT_STREAM
    ) -> Run:
        """`tensor.cpu()`; with `pinned`, a copy into a pinned buffer."""
        with self.builtin("copy_ of Tensor object" if pinned else "cpu of Tensor object"):
            if pinned:
                with self.op("aten::copy_", tensor, tensor, non_blocking):
                    yield from self.host.copy("DtoH", tensor.nbytes, pinned=True, stream=stream)
                    if not non_blocking:
                        yield from self.host.synchronize(stream)
            else:
                with self.op("aten::to", tensor, None, 0, "cpu", None, False, False, None):
                    yield from self._copy(tensor, "DtoH", "cpu", pinned=False, non_blocking=False)

    def _copy(self, tensor: Tensor, direction: str, device: str, *, pinned: bool, non_blocking: bool, **on: int) -> Run:
        with self.op("aten::_to_copy", tensor, None, 0, device, None, non_blocking, None):
            strides, code = (
                [prod(tensor.shape[axis + 1 :]) for axis in range(len(tensor.shape))],
                DTYPE_CODES[tensor.dtype],
            )
            with self.op("aten::empty_strided", list(tensor.shape), strides, code, 0, device, False):
                if direction == "HtoD":
                    yield from self._memory(tensor)
            with self.op("aten::copy_", tensor, tensor, non_blocking):
                yield from self.host.copy(direction, tensor.nbytes, pinned=pinned, **on)
                if not non_blocking:
                    yield from self.host.synchronize(on.get("stream", DEFAULT_STREAM))

    def item(self, tensor: Tensor = SCALAR, *, framed: bool = True) -> Run:
        """`tensor.item()`, or `float(tensor)` without its frame."""
        if framed:
            with self.builtin("item of Tensor object"):
                yield from self.item(tensor, framed=False)
            return
        with self.op("aten::item", tensor), self.op("aten::_local_scalar_dense", tensor):
            yield from self.host.copy("DtoH", tensor.nbytes, pinned=self.session.items_pinned)
            yield from self.host.synchronize()

    def truth(self) -> Run:
        """`if tensor:`."""
        with self.op("aten::is_nonzero", FLAG):
            yield from self.item(FLAG, framed=False)

    # Gradients ------------------------------------------------------------------------------------------------------

    def backward(self, loss: Tensor = SCALAR) -> Run:
        """`loss.backward()`: the autograd thread plays the tape backwards while this one waits."""
        session, done = self.session, Signal()
        with self.frame("torch/_tensor.py(566): backward"):
            self.at(630)
            with self.frame("torch/autograd/__init__.py(255): backward"):
                with (
                    self.at(353).builtin("ones_like of type object"),
                    self.op("aten::ones_like", loss, None, None, None, False, 1),
                ):
                    yield from self.run("aten::fill_", loss, 1.0, kernel=FILL, us=1.6)
                with (
                    self.at(358).frame("torch/autograd/graph.py(1059): _engine_run_backward"),
                    self.at(1075).builtin("run_backward of torch._C._EngineBase object"),
                ):
                    worker = self.machine.thread(AUTOGRAD_THREAD, self.host.now + HAND_OVER_NS)
                    self.machine.start(worker, Torch(session, worker).play_backward(done))
                    yield from self.host.wait(done)
                    self.host.spend(HAND_OVER_NS)

    def play_backward(self, done: Signal) -> Run:
        """The program of the autograd thread."""
        session = self.session
        for node in reversed(session.tape):
            with self.op(f"autograd::engine::evaluate_function: {node.name}", sequence=node.sequence):
                with self.op(node.name, SCALAR, sequence=node.sequence) as span:
                    session.flows.append(Flow(len(session.flows) + 1, node.forward, span))
                    yield from node.gradient(self)
                if session.anomaly:
                    yield from self.look_for_nan(Tensor((64, 1024)))
            for parameter in node.parameters:
                with self.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"):
                    with self.op("torch::autograd::AccumulateGrad", parameter):
                        if session.gradients_kept:
                            yield from self.run("aten::add_", parameter, parameter, 1, kernel=ADD, us=3.2)
                        else:
                            with self.op("aten::detach", parameter):
                                pass
                    if session.gradient_hook is not None:
                        yield from session.gradient_hook(self, parameter)
        session.tape.clear()
        self.machine.set(done, self.host.now)

    def look_for_nan(self, tensor: Tensor) -> Run:
        """What anomaly mode does with every gradient."""
        with self.op("aten::isnan", tensor):
            yield from self.run("aten::ne", tensor, tensor, kernel=elementwise("CompareFunctor<float>"), us=2.4)
        with self.op("aten::_is_any_true", tensor):
            yield from self.run("aten::any", tensor, kernel=reduction("at::native::func_wrapper_t<bool>"), us=3.4)
        yield from self.item(FLAG, framed=False)


ADD = elementwise("CUDAFunctor_add<float>")


def no_gradient(_: Torch) -> Run:
    yield from ()
