"""Bugs in copies between host and device, and the same scripts without them."""

from simulator.simulated_machine import Kernel, Run
from simulator.simulated_program import Pair
from simulator.torch_calls import ADD, GEMM, Tensor, Torch, reduction
from simulator.training_parts import Net
from simulator.training_script import Hook, Script, pair

IMAGES = Tensor((32, 3, 224, 224), "float")
LARGE_IMAGES = Tensor((64, 3, 224, 224), "float")
LOGITS = Tensor((512, 12_288))
RANDOM = Kernel(
    "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, normal_kernel>"
)
ARGMAX = reduction("ArgMaxOps<float>")
SIDE_STREAM = 20


def constant_per_layer(t: Torch, layer: int) -> Run:
    """`x * torch.tensor(0.5, device="cuda")`."""
    with t.at(38).builtin("tensor of type object"):
        scalar = Tensor((), "float")
        yield from t.to_device(scalar, framed=False)
        for name in ("aten::lift_fresh", "aten::detach_"):
            with t.op(name, scalar):
                pass
    yield from scale(t, layer)


def scale(t: Torch, layer: int) -> Run:
    """`x * self.half`, a buffer."""
    yield from t.at(39).run("aten::mul", Tensor((64, 1024)), Tensor((), "float"), kernel=ADD, us=3)


def targets_one_by_one(t: Torch, step: int) -> Run:
    with t.frame("targets.py(30): to_device"):
        for _ in range(36):
            yield from t.at(32).to_device(Tensor((180, 5), "float"))


def targets_at_once(t: Torch, step: int) -> Run:
    """`torch.cat(targets, out=pinned).to(device, non_blocking=True).split(sizes)`."""
    each = [Tensor((180, 5), "float")] * 36
    with t.frame("targets.py(30): to_device"):
        with t.at(32).builtin("cat of type object"), t.op("aten::cat", each, 0):
            t.think(24)
        yield from t.at(33).to_device(Tensor((6480, 5), "float"), pinned=True, non_blocking=True)
        with (
            t.at(34).builtin("split_with_sizes of Tensor object"),
            t.op("aten::split_with_sizes", Tensor((6480, 5), "float"), [180] * 36, 0),
        ):
            t.think(30)


def noise_from_host(t: Torch, step: int) -> Run:
    """`torch.randn(shape).to(device)`."""
    noise = Tensor((14, 4, 64, 64), "float")
    with t.frame("diffusion.py(21): add_noise"):
        with t.at(23).builtin("randn of type object"), t.op("aten::randn", list(noise.shape), None, None, "cpu", False):
            with t.op("aten::empty", list(noise.shape), 6, 0, "cpu", False, None):
                t.think(2)
            with t.op("aten::normal_", noise, 0.0, 1.0, None):
                t.think(1_000)
        yield from t.at(23).to_device(noise)
        yield from t.at(24).run("aten::add", noise, noise, 1, kernel=ADD, us=4)


def noise_on_device(t: Torch, step: int) -> Run:
    """`torch.randn(shape, device=device)`."""
    noise = Tensor((14, 4, 64, 64), "float")
    with t.frame("diffusion.py(21): add_noise"):
        with (
            t.at(23).builtin("randn of type object"),
            t.op("aten::randn", list(noise.shape), None, None, "cuda:0", False),
        ):
            yield from t.new(noise)
            yield from t.run("aten::normal_", noise, 0.0, 1.0, None, kernel=RANDOM, us=5)
        yield from t.at(24).run("aten::add", noise, noise, 1, kernel=ADD, us=4)


def upload_weights(t: Torch, step: int) -> Run:
    """`class_weights.to(device)` in the loss."""
    with t.frame("losses.py(40): weighted"):
        yield from t.at(42).to_device(Tensor((128, 1024), "float"))
        t.at(43).think(330)
        yield from t.at(44).run("aten::mul", Tensor((128, 1024), "float"), kernel=ADD, us=4)


def kept_weights(t: Torch, step: int) -> Run:
    """The same with `self.class_weights`, a buffer."""
    with t.frame("losses.py(40): weighted"):
        t.at(43).think(330)
        yield from t.at(44).run("aten::mul", Tensor((128, 1024), "float"), kernel=ADD, us=4)


def keep_predictions_on_host(t: Torch, step: int) -> Run:
    with t.frame("train.py(84): collect"):
        yield from t.at(86).to_host(LOGITS)


def keep_classes_on_device(t: Torch, step: int) -> Run:
    with t.frame("train.py(84): collect"):
        yield from t.at(86).method(
            "argmax of Tensor object", "aten::argmax", LOGITS, 1, False, kernel=ARGMAX, us=14, makes=Tensor((512,))
        )


def pin_in_loop(t: Torch, step: int) -> Run:
    """`batch.pin_memory().to(device, non_blocking=True)`, where no two batches are of one size."""
    batch = Tensor((12 + step, 3, 224, 224), "float")
    with (
        t.builtin("pin_memory of Tensor object"),
        t.op("aten::pin_memory", batch, None),
        t.op("aten::_pin_memory", batch, None),
    ):
        yield from t.host.allocate_pinned(batch.nbytes)
        with t.op("aten::copy_", batch, batch, False):
            t.think(batch.nbytes / 9_000)
    yield from t.to_device(batch, pinned=True, non_blocking=True)


def pinned_by_loader(t: Torch, step: int) -> Run:
    batch = Tensor((12 + step, 3, 224, 224), "float")
    yield from t.to_device(batch, pinned=True, non_blocking=True)


def copy_ahead() -> Hook:
    """Each batch is copied on a stream of its own while the step before it computes."""
    arrived: list[int] = []

    def move(t: Torch, step: int) -> Run:
        with t.frame("prefetch.py(18): next"):
            if not step:
                yield from upload(t.at(20))
            yield from t.at(24).host.wait_event(arrived[step], 7)
            yield from upload(t.at(25))

    def upload(t: Torch) -> Run:
        with t.frame("prefetch.py(30): preload"):
            yield from t.at(33).to_device(LARGE_IMAGES, pinned=True, non_blocking=True, stream=SIDE_STREAM)
            arrived.append((yield from t.host.record(SIDE_STREAM)))

    return move


def same_stream() -> Hook:
    def move(t: Torch, step: int) -> Run:
        with t.frame("prefetch.py(18): next"):
            yield from t.at(22).to_device(LARGE_IMAGES, pinned=True, non_blocking=True)

    return move


def bring_and_send_back(t: Torch, layer: int) -> Run:
    """`block.to(device)`, its work, `block.to("cpu")`."""
    weight = Tensor((2048, 1024))
    with t.at(38).frame("offload.py(30): run"):
        for line in (33, 40):
            with (
                t.at(line).frame("torch/nn/modules/module.py(1311): to"),
                t.at(1387).frame("torch/nn/modules/module.py(914): _apply"),
            ):
                if line == 33:
                    yield from t.at(957).to_device(weight)
                else:
                    yield from t.at(957).to_host(weight)
            if line == 33:
                yield from resident(t.at(36), layer)


def resident(t: Torch, layer: int) -> Run:
    yield from t.run("aten::mm", Tensor((64, 1024)), Tensor((1024, 2048)), kernel=GEMM, us=40)


def transfer_pairs() -> list[Pair]:
    return [
        pair(
            "h2d-pageable",
            Script(net=Net(linear_us=110), batch=IMAGES, pinned=False, non_blocking=False),
            "the copy is twice as fast and no longer holds the host",
            pinned=True,
            non_blocking=True,
        ),
        pair(
            "h2d-tiny-constant",
            Script(net=Net(linear_us=45, python_us=30), per_layer=constant_per_layer),
            "six waits for an upload of four bytes are gone, the forward pass runs ahead",
            per_layer=scale,
        ),
        pair(
            "h2d-many-small",
            Script(net=Net(layers=5), before_forward=targets_one_by_one),
            "one asynchronous copy instead of 36 that each wait",
            before_forward=targets_at_once,
        ),
        pair(
            "h2d-create-then-move",
            Script(before_forward=noise_from_host),
            "the host neither draws the numbers nor waits for their upload",
            before_forward=noise_on_device,
        ),
        pair(
            "h2d-repeated-constant",
            Script(before_backward=upload_weights, bookkeeping_us=200),
            "no upload, and no wait for the forward pass",
            before_backward=kept_weights,
        ),
        pair(
            "h2d-not-overlapped",
            Script(net=Net(linear_us=110), move=same_stream, bookkeeping_us=60),
            "the copy hides behind the step before",
            move=copy_ahead,
        ),
        pair(
            "d2h-large-output",
            Script(after_step=keep_predictions_on_host, bookkeeping_us=150),
            "no download of 12 MB, no wait",
            after_step=keep_classes_on_device,
        ),
        pair(
            "pin-in-loop",
            Script(net=Net(linear_us=90), move=lambda: pin_in_loop),
            "the loader's thread has pinned the batch; the loop neither pins nor copies",
            move=lambda: pinned_by_loader,
        ),
        pair(
            "offload-thrash",
            Script(net=Net(layers=5), per_layer=bring_and_send_back),
            "the weights stay on the device",
            per_layer=resident,
        ),
    ]
