"""Bugs that keep the host busy so that the device starves, and the same scripts without them."""

from simulator.simulated_machine import Kernel, Run, Span
from simulator.simulated_program import Body, Pair, Program
from simulator.torch_calls import ADD, Tensor, Torch
from simulator.training_parts import MULTI_TENSOR, RELU, AdamW, Net
from simulator.training_script import NO_STACK, Script, nothing, pair

SMALL = Net(layers=4, linear_us=22, relu_us=6)
TINY = Tensor((8, 64))
COLLECTIONS = {1: 5_200, 3: 6_100, 4: 4_700}
"""Steps in which a full garbage collection happens, and its microseconds."""


def small_kernels(t: Torch, number: int) -> Run:
    """A block of an MLP of width 64, operator by operator."""
    for _ in range(24):
        yield from t.run("aten::addmm", TINY, TINY, kernel=Kernel("ampere_bf16_s16816gemm_bf16_64x64_sliced"), us=3.4)
        yield from t.run("aten::relu", TINY, kernel=RELU, us=1.9)


def captured_kernels(t: Torch, number: int) -> Run:
    """The same block as a captured graph."""
    block = [(Kernel("ampere_bf16_s16816gemm_bf16_64x64_sliced"), 3_400), (RELU, 1_900)] * 24
    yield from t.host.launch_graph(block)


def calls_only(kernels) -> Body:
    """A step of two blocks."""

    def body(t: Torch, step: int) -> Run:
        t.session.grad_enabled = False
        for number in range(2):
            t.think(12)
            yield from kernels(t, number)

    return body


def row_by_row(t: Torch, step: int) -> Run:
    """`for i in range(len(x)): torch.mul(x[i], weight, out=out[i])`."""
    row = Tensor((1024,))
    with t.frame("pooling.py(9): weighted"):
        for number in range(60):
            with t.at(12).op("aten::select", Tensor((64, 1024)), 0, number):
                t.think(0.8)
            yield from t.run("aten::mul", row, row, row, kernel=ADD, us=1.7)


def all_rows(t: Torch, step: int) -> Run:
    """`torch.mul(x, weight, out=out)`."""
    with t.frame("pooling.py(9): weighted"):
        yield from t.at(12).run("aten::mul", Tensor((64, 1024)), Tensor((64, 1024)), kernel=ADD, us=3)


def average_one_by_one(t: Torch, step: int) -> Run:
    weight = Tensor((1024, 1024))
    with t.frame("ema.py(15): update"):
        for _ in range(26):
            t.at(17).think(2)
            yield from t.at(18).method("mul_ of Tensor object", "aten::mul_", weight, 0.999, kernel=ADD, us=2.4)
            yield from t.at(18).method("add_ of Tensor object", "aten::add_", weight, weight, 0.001, kernel=ADD, us=2.8)


def average_at_once(t: Torch, step: int) -> Run:
    weights = [Tensor((1024, 1024))] * 26
    with t.frame("ema.py(15): update"):
        t.at(16).think(1.2 * len(weights))  # the lists of averages and of parameters
        yield from t.at(17).method(
            "_foreach_lerp_ of type object", "aten::_foreach_lerp_", weights, weights, 0.001, kernel=MULTI_TENSOR, us=60
        )


def collect_garbage(t: Torch, step: int) -> Run:
    """An automatic collection, as `record_python_gc_info` shows it: a span without ids."""
    if step in COLLECTIONS:
        start = t.host.now
        t.think(COLLECTIONS[step])
        t.machine.spans.append(Span("python_function", "Python GC", t.host.number, start, t.host.now))
    yield from ()


def walk_modules(t: Torch, step: int) -> Run:
    """`model.train()` and two rounds of `named_parameters()` in every step."""
    module = "torch/nn/modules/module.py"
    with t.frame(f"{module}(2894): train"):
        for _ in range(48):
            with t.at(2917).frame(f"{module}(2894): train"), t.at(2913).frame(f"{module}(1968): __setattr__"):
                t.think(2.4)
    for line in (88, 92):
        with t.at(line).frame(f"{module}(2699): named_parameters"), t.at(2722).frame(f"{module}(2650): _named_members"):
            for _ in range(48):
                with t.at(2656).frame(f"{module}(2845): named_modules"):
                    t.think(2.2)
                with t.at(2660).frame(f"{module}(2724): <lambda>"):
                    t.think(1.6)
    yield from ()


def copy_deeply(t: Torch, step: int) -> Run:
    """`copy.deepcopy(batch_config)`."""
    with t.frame("copy.py(128): deepcopy"), t.at(146).frame("copy.py(227): _deepcopy_dict"):
        for _ in range(84):
            with (
                t.at(231).frame("copy.py(128): deepcopy"),
                t.at(146).frame("copy.py(201): _deepcopy_list"),
                t.at(205).frame("copy.py(128): deepcopy"),
            ):
                t.think(4.6)
    yield from ()


def warn(t: Torch, layer: int) -> Run:
    with t.frame("warnings.py(96): _showwarnmsg"), t.at(109).frame("warnings.py(20): _showwarnmsg_impl"):
        with (
            t.at(28).frame("warnings.py(117): _formatwarnmsg"),
            t.at(128).frame("warnings.py(35): _formatwarnmsg_impl"),
            t.at(41).frame("linecache.py(26): getline"),
        ):
            t.think(62)
        with t.at(30).builtin("write of _io.TextIOWrapper object"):
            t.think(58)
    yield from ()


def miss_attribute(t: Torch, layer: int) -> Run:
    """`hasattr(wrapper, "name")` where the error text formats the whole model."""
    with (
        t.builtin("hasattr"),
        t.frame("wrapper.py(19): __getattr__"),
        t.at(23).frame("torch/nn/modules/module.py(3001): __repr__"),
    ):
        for _ in range(8):
            with (
                t.at(3010).frame("torch/nn/modules/module.py(3001): __repr__"),
                t.at(3005).frame("torch/nn/modules/linear.py(140): extra_repr"),
            ):
                t.think(16)
    yield from ()


def host_pairs() -> list[Pair]:
    many = [Tensor((1024, 1024))] * 12
    lots = [Tensor((64,))] * 110
    return [
        Pair(
            "launch-bound-small-kernels",
            Program("launch-bound-small-kernels slow", lambda: calls_only(small_kernels), NO_STACK),
            Program("launch-bound-small-kernels fixed", lambda: calls_only(captured_kernels), NO_STACK),
            "one graph launch instead of 48 launches",
        ),
        pair(
            "python-loop-small-ops",
            Script(net=SMALL, before_forward=row_by_row),
            "one operator over the batch instead of 120",
            before_forward=all_rows,
        ),
        pair(
            "optimizer-for-loop",
            Script(net=SMALL, optimizer=AdamW(many, "single")),
            "two launches instead of 96",
            optimizer=AdamW(many, "fused"),
            options={"steps": 5},
        ),
        pair(
            "optimizer-foreach-host-bound",
            Script(net=SMALL, optimizer=AdamW(lots, "foreach")),
            "one fused call instead of nine that each walk over all parameters",
            optimizer=AdamW(lots, "fused"),
        ),
        pair(
            "ema-for-loop",
            Script(net=SMALL, after_step=average_one_by_one),
            "one multi-tensor call instead of 52",
            after_step=average_at_once,
        ),
        pair(
            "python-gc-pause",
            Script(before_backward=collect_garbage),
            "no collection in the middle of a step",
            before_backward=nothing,
        ),
        pair(
            "module-tree-walk",
            Script(net=SMALL, before_forward=walk_modules),
            "the list of parameters is kept, the mode is set once",
            before_forward=nothing,
        ),
        pair(
            "deepcopy-in-loop",
            Script(net=SMALL, before_forward=copy_deeply),
            "no deep copy",
            before_forward=nothing,
        ),
        pair(
            "warning-logging-hot-path",
            Script(net=Net(layers=6, linear_us=22, relu_us=6), per_layer=warn),
            "the warning is not raised six times a step",
            per_layer=None,
        ),
        pair(
            "attr-miss-exception",
            Script(net=SMALL, per_layer=miss_attribute),
            "the attribute is looked up once, before the loop",
            per_layer=None,
        ),
    ]
