"""Scripts that need no fix: healthy ones that look suspicious, and bugs that cost nothing where they are."""

from simulator.host_pairs import walk_modules
from simulator.simulated_machine import Run
from simulator.simulated_program import Body, Pair, Program
from simulator.sync_pairs import read_loss
from simulator.torch_calls import ADD, SCALAR, Tensor, Torch
from simulator.training_parts import AdamW, Loader, Net
from simulator.training_script import NO_STACK, Hook, Script, nothing, pair
from simulator.transfer_pairs import IMAGES, SIDE_STREAM, copy_ahead

LARGE = Net(linear_us=190, relu_us=30)
"""The device needs some 4.2 ms for a step, the host half a millisecond."""
LARGEST = Net(linear_us=420, relu_us=30)
METRIC_STREAM = 24


def every_fiftieth(t: Torch, step: int) -> Run:
    """`if step % 50 == 0: log(loss.item())`, where the window holds one such step."""
    if step == 3:
        yield from read_loss(t, step)


def tiny_labels(t: Torch, step: int) -> Run:
    """`labels.to(device, non_blocking=True)` of 512 bytes that nobody pinned."""
    yield from t.to_device(Tensor((64,), "long int"), non_blocking=True)


def count_on_host(t: Torch, step: int) -> Run:
    """`.item()` of a tensor that lies on the host: no copy, no wait."""
    with (
        t.frame("train.py(70): log_count"),
        t.at(72).builtin("item of Tensor object"),
        t.op("aten::item", SCALAR),
        t.op("aten::_local_scalar_dense", SCALAR),
    ):
        t.think(1)
    yield from ()


def flood(t: Torch, step: int) -> Run:
    """More launches than the queue holds, each of a kernel that takes longer than its launch."""
    t.session.grad_enabled = False
    for _ in range(165):
        yield from t.run("aten::add_", Tensor((4096, 4096)), kernel=ADD, us=24)


def flooding() -> Body:
    return flood


def last_loss(*, read: bool) -> Hook:
    """The loss of the step before is copied on a side stream and waited for there, while the device computes."""
    ready: list[int] = []

    def hook(t: Torch, step: int) -> Run:
        with t.frame("train.py(70): log_loss"):
            if ready and read:
                yield from t.at(72).host.wait_event(ready[-1], METRIC_STREAM)
                with (
                    t.at(73).builtin("item of Tensor object"),
                    t.op("aten::item", SCALAR),
                    t.op("aten::_local_scalar_dense", SCALAR),
                ):
                    yield from t.host.copy("DtoH", 4, pinned=True, stream=METRIC_STREAM)
                    yield from t.host.synchronize(METRIC_STREAM)
            ready.append((yield from t.at(75).host.record()))

    return hook


def two_steps_ahead(*, pinned: bool) -> Hook:
    """The next batch is copied on a side stream after this step is launched; a pageable copy holds the host."""

    def hook(t: Torch, step: int) -> Run:
        with t.frame("prefetch.py(30): preload"):
            yield from t.at(33).to_device(IMAGES, pinned=pinned, non_blocking=True, stream=SIDE_STREAM)

    return hook


def healthy() -> list[Program]:
    """Programs without a bug, in which a careless reader would find one."""
    scripts = {
        "item at the end of a step that keeps the device busy": Script(net=LARGEST, after_step=read_loss),
        "loss read every fifty steps": Script(net=LARGE, after_step=every_fiftieth),
        "pageable copies of 512 bytes": Script(net=LARGE, before_forward=tiny_labels),
        "item of a tensor on the host": Script(net=LARGE, after_step=count_on_host),
        "loader that takes long while the device has work": Script(
            net=LARGE, loader=lambda: Loader(workers=1, batch_us=3_600)
        ),
        "batches copied ahead on a stream of their own": Script(net=LARGE, move=copy_ahead),
    }
    return [
        *(Program(name, script.make) for name, script in scripts.items()),
        Program("launches that wait for room in the queue", flooding, NO_STACK, queue_depth=256, steps=5),
    ]


def cold_start() -> Program:
    """One step, the first of its process: kernels are loaded and memory is asked for, nothing else is wrong."""
    return Program("cold start", Script().make, steps=1)


def latent() -> list[Pair]:
    """Bugs that are real and cost nothing here: the fixed version is no faster."""
    few = [Tensor((1024, 1024))] * 4
    return [
        pair(
            "sync-item-scalar",
            Script(net=LARGE, after_step=last_loss(read=True)),
            "the wait is over before the device runs out of work",
            after_step=last_loss(read=False),
        ),
        pair(
            "h2d-pageable",
            Script(net=LARGE, after_step=two_steps_ahead(pinned=False)),
            "the copy on the side stream and the host that it holds hide behind the step",
            after_step=two_steps_ahead(pinned=True),
        ),
        pair(
            "module-tree-walk",
            Script(net=LARGE, before_forward=walk_modules),
            "the host has time to walk",
            before_forward=nothing,
        ),
        pair(
            "optimizer-for-loop",
            Script(net=LARGE, optimizer=AdamW(few, "single")),
            "the launches hide behind the backward pass; the small kernels themselves cost a little",
            optimizer=AdamW(few, "fused"),
        ),
        pair(
            "dataloader-in-process",
            Script(net=LARGE, loader=lambda: Loader(workers=0, batch_us=1_200)),
            "the batch is made while the device works on the one before",
            loader=lambda: Loader(workers=4, batch_us=1_200),
        ),
    ]
