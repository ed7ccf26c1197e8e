"""Bugs that make the host wait for the device, and the same scripts without the wait."""

from simulator.simulated_machine import Kernel, Run
from simulator.simulated_program import Pair, Program
from simulator.torch_calls import ADD, FLAG, SCALAR, Session, Tensor, Torch, elementwise, reduction
from simulator.training_parts import MULTI_TENSOR, Net, average
from simulator.training_script import Inference, Script, nothing, pair

ANY = reduction("at::native::func_wrapper_t<bool>")
MASK = elementwise("BinaryFunctor<bool, bool, bool>")
WHERE = elementwise("masked_fill_kernel<c10::BFloat16, bool>")
NORM = reduction("NormTwoOps<float>")
COMPACT = Kernel("void at_cuda_detail::cub::DeviceSelectSweepKernel<at_cuda_detail::cub::CountingInputIterator<long> >")
GATHER = Kernel("void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<c10::BFloat16> >")
COUNT = reduction("at::native::sum_functor<int, int>")
TOKENS = Tensor((4096, 1), "float")
LABELS = Tensor((4096,), "long int")


def read_loss(t: Torch, step: int) -> Run:
    with t.frame("train.py(70): log_loss"):
        yield from t.at(72).item()


def keep_loss(t: Torch, step: int) -> Run:
    with t.frame("train.py(70): log_loss"):
        yield from t.at(72).method("add_ of Tensor object", "aten::add_", SCALAR, SCALAR, 1, kernel=ADD, us=1.8)


def branch_on_mask(t: Torch, layer: int) -> Run:
    yield from t.at(38).method("any of Tensor object", "aten::any", Tensor((64, 64), "bool"), kernel=ANY, us=3)
    yield from t.truth()
    yield from fill_masked(t, layer)


def fill_masked(t: Torch, layer: int) -> Run:
    x = Tensor((64, 1024))
    yield from t.at(39).method("masked_fill of Tensor object", "aten::masked_fill", x, FLAG, 0, kernel=WHERE, us=4)


def loss_of_masked(t: Torch, step: int) -> Run:
    """`per_token[labels != -100].mean()` for three heads of a model."""
    with t.frame("losses.py(12): masked_loss"):
        for _ in range(3):
            yield from t.at(15).run("aten::ne", LABELS, -100, kernel=MASK, us=2)
            with t.at(16).op("aten::index", TOKENS, None):
                with t.op("aten::nonzero", Tensor((4096,), "bool")):
                    yield from t.host.launch(COUNT, 3_000)
                    yield from t.host.copy("DtoH", 4, pinned=True)
                    yield from t.host.synchronize()
                    yield from t.host.launch(COMPACT, 4_000)
                yield from t.host.launch(GATHER, 4_000)
            yield from average(t.at(16), TOKENS, 3)
            t.at(18).think(110)


def loss_by_weights(t: Torch, step: int) -> Run:
    with t.frame("losses.py(12): masked_loss"):
        for _ in range(3):
            yield from t.at(15).run("aten::ne", LABELS, -100, kernel=MASK, us=2)
            yield from t.at(16).run("aten::mul", TOKENS, TOKENS, kernel=ADD, us=3)
            yield from average(t.at(16), TOKENS, 3)
            t.at(18).think(110)


def repeat_by_counts(t: Torch, layer: int, *, size: int | None = None) -> Run:
    """`torch.repeat_interleave(features, counts, output_size=size)`."""
    counts = Tensor((64,), "long int")
    with (
        t.at(38).builtin("repeat_interleave of type object"),
        t.op("aten::repeat_interleave", Tensor((64, 1024)), counts, 0, size),
    ):
        with t.op("aten::repeat_interleave", counts, size):
            yield from t.run("aten::cumsum", counts, 0, None, kernel=COUNT, us=3)
            if size is None:
                yield from t.item(Tensor((), "long int"), framed=False)
            yield from t.host.launch(COMPACT, 3_000)
        yield from t.run("aten::index_select", Tensor((64, 1024)), 0, counts, kernel=GATHER, us=4)


def repeat_to_size(t: Torch, layer: int) -> Run:
    yield from repeat_by_counts(t, layer, size=192)


def clip_checked(t: Torch, step: int) -> Run:
    yield from clip(t, check=True)


def clip_unchecked(t: Torch, step: int) -> Run:
    yield from clip(t, check=False)


def clip(t: Torch, *, check: bool) -> Run:
    """`clip_grad_norm_(parameters, 1.0, error_if_nonfinite=check)`."""
    gradients = [Tensor((1024, 1024))] * 6
    with t.frame("torch/nn/utils/clip_grad.py(185): clip_grad_norm_"):
        with t.at(226).frame("torch/nn/utils/clip_grad.py(49): _get_total_norm"):
            yield from t.at(89).method(
                "_foreach_norm of type object", "aten::_foreach_norm", gradients, 2, kernel=MULTI_TENSOR, us=9
            )
            yield from t.at(99).run("aten::linalg_vector_norm", Tensor((6,), "float"), 2.0, kernel=NORM, us=3)
            if check:
                for name in ("isnan", "isinf", "logical_or"):
                    yield from t.at(103).run(f"aten::{name}", SCALAR, kernel=MASK, us=1.6)
                yield from t.truth()
        with t.at(233).frame("torch/nn/utils/clip_grad.py(120): _clip_grads_with_norm_"):
            yield from t.at(155).run("aten::clamp", SCALAR, None, 1.0, kernel=ADD, us=1.6)
            yield from t.at(168).method(
                "_foreach_mul_ of type object", "aten::_foreach_mul_", gradients, SCALAR, kernel=MULTI_TENSOR, us=9
            )


def guard_gradient(t: Torch, parameter: Tensor) -> Run:
    """`if not torch.isfinite(parameter.grad).all(): ...` in a hook."""
    yield from t.run("aten::isfinite", parameter, kernel=MASK, us=3)
    yield from t.run("aten::all", parameter, kernel=ANY, us=3)
    yield from t.truth()


def remember_guard(t: Torch, parameter: Tensor) -> Run:
    yield from t.run("aten::isfinite", parameter, kernel=MASK, us=3)
    yield from t.run("aten::all", parameter, kernel=ANY, us=3)
    yield from t.run("aten::logical_and_", FLAG, FLAG, kernel=MASK, us=1.6)


def older_items(session: Session) -> None:
    session.items_pinned = False


def with_guard(session: Session) -> None:
    session.gradient_hook = guard_gradient


def with_late_guard(session: Session) -> None:
    session.gradient_hook = remember_guard


def time_with_sync(t: Torch, step: int) -> Run:
    with t.frame("timing.py(8): lap"):
        with t.at(9).frame("torch/cuda/__init__.py(1271): synchronize"), t.at(1284).builtin("_cuda_synchronize"):
            yield from t.host.synchronize(None)
        with t.at(10).builtin("perf_counter"):
            t.think(90)


def time_with_events(t: Torch, step: int) -> Run:
    with t.frame("timing.py(8): lap"):
        with t.at(9).frame("torch/cuda/streams.py(225): record"):
            yield from t.host.record()
        with t.at(10).builtin("perf_counter"):
            t.think(90)


def match_on_host(t: Torch, layer: int) -> Run:
    """`linear_sum_assignment(cost.cpu())` and the indices back on the device."""
    with t.at(38).frame("matcher.py(20): match"):
        yield from t.at(24).to_host(Tensor((64, 64), "float"))
        with t.at(25).builtin("linear_sum_assignment"):
            t.think(170)
        with t.at(26).frame("numpy/_core/shape_base.py(380): stack"):
            t.think(25)
        yield from t.at(27).to_device(Tensor((64,), "long int"))
        yield from t.at(28).run("aten::index", Tensor((64, 1024)), [LABELS], kernel=GATHER, us=4)


def match_on_device(t: Torch, layer: int) -> Run:
    with t.at(38).frame("matcher.py(20): match"):
        yield from t.at(24).run("aten::argmin", Tensor((64, 64), "float"), 1, False, kernel=NORM, us=18)
        yield from t.at(28).run("aten::index", Tensor((64, 1024)), [LABELS], kernel=GATHER, us=4)


def print_loss(t: Torch, step: int) -> Run:
    with (
        t.builtin("print"),
        t.frame("torch/_tensor.py(518): __repr__"),
        t.at(523).frame("torch/_tensor_str.py(714): _str"),
        t.at(716).frame("torch/_tensor_str.py(443): _str_intern"),
        t.at(616).frame("torch/_tensor_str.py(335): _tensor_str"),
    ):
        for line in (140, 150, 151, 165):
            yield from t.at(line).method("abs of Tensor object", "aten::abs", SCALAR, kernel=ADD, us=1.8)
            yield from t.item()
            t.think(35)


def table_by_device_step(t: Torch, number: int) -> Run:
    """`alphas[t]` where `t` lies on the device."""
    with t.frame("scheduler.py(61): step"):
        t.at(63).think(25)
        yield from t.at(64).item(Tensor((), "long int"), framed=False)
        yield from select(t)


def table_by_host_step(t: Torch, number: int) -> Run:
    with t.frame("scheduler.py(61): step"):
        t.at(63).think(25)
        yield from select(t.at(64))


def prepare_targets(t: Torch, step: int) -> Run:
    with t.frame("targets.py(14): prepare"):
        t.think(420)
    yield from ()


def select(t: Torch) -> Run:
    with t.op("aten::select", Tensor((1000,), "float"), 0, 999):
        t.think(2)
    yield from t.at(66).method("mul of Tensor object", "aten::mul", Tensor((64, 1024)), SCALAR, kernel=ADD, us=5)


def pack_from_device(t: Torch, step: int) -> Run:
    """`pack_padded_sequence(x, lengths.cpu())`, where the lengths were moved with the batch."""
    yield from pack(t, on_device=True)


def pack_from_host(t: Torch, step: int) -> Run:
    yield from pack(t, on_device=False)


def pack(t: Torch, *, on_device: bool) -> Run:
    lengths = Tensor((64,), "long int")
    with t.frame("encoder.py(25): forward"):
        if on_device:
            yield from t.at(28).to_host(lengths)
        with (
            t.at(28).frame("torch/nn/utils/rnn.py(226): pack_padded_sequence"),
            t.at(329).op("aten::_pack_padded_sequence", Tensor((64, 128, 512)), lengths, True),
        ):
            yield from t.host.launch(GATHER, 9_000)
        t.at(31).think(280)


def scaled_twice(t: Torch, step: int) -> Run:
    """`scaler.step(optimizer)` for two optimizers, each of which asks the device whether it may."""
    gradients = [Tensor((1024, 1024), "c10::Half")] * 3
    for line in (62, 63):
        with t.at(line).frame("torch/amp/grad_scaler.py(359): step"):
            with t.at(449).frame("torch/amp/grad_scaler.py(241): _unscale_grads_"):
                yield from t.at(281).run(
                    "aten::_amp_foreach_non_finite_check_and_unscale_", gradients, SCALAR, SCALAR, kernel=NORM, us=8
                )
            with t.at(454).frame("torch/amp/grad_scaler.py(347): _maybe_opt_step"):
                yield from t.at(354).item()
    with t.at(64).frame("torch/amp/grad_scaler.py(474): update"):
        yield from t.at(524).run("aten::_amp_update_scale_", SCALAR, SCALAR, SCALAR, 2.0, 0.5, 2000, kernel=ADD, us=2)


def sync_pairs() -> list[Pair]:
    timed = Script(
        before_backward=time_with_sync, after_backward=time_with_sync, after_step=time_with_sync, bookkeeping_us=200
    )
    return [
        pair(
            "sync-item-scalar",
            Script(bookkeeping_us=520, after_step=read_loss),
            "meters and the next batch run while the device works, instead of after it",
            after_step=keep_loss,
        ),
        pair(
            "sync-tensor-truth",
            Script(per_layer=branch_on_mask, net=Net(linear_us=45, python_us=30), prepare=older_items),
            "the forward pass is launched ahead of the device, instead of layer by layer",
            per_layer=fill_masked,
        ),
        pair(
            "sync-bool-mask-index",
            Script(before_backward=loss_of_masked, net=Net(linear_us=45, relu_us=8)),
            "Python of the loss hides behind the forward pass; no compaction",
            before_backward=loss_by_weights,
        ),
        pair(
            "sync-data-dependent-shape",
            Script(per_layer=repeat_by_counts, net=Net(linear_us=45, python_us=40)),
            "the sizes are known, so the forward pass runs ahead",
            per_layer=repeat_to_size,
        ),
        pair(
            "sync-clip-grad",
            Script(bookkeeping_us=520, after_backward=clip_checked, prepare=older_items),
            "optimizer and meters are handed over while the backward pass still runs",
            after_backward=clip_unchecked,
        ),
        pair(
            "sync-nan-guard",
            Script(net=Net(layers=8, linear_us=32), prepare=with_guard),
            "eight waits in the backward pass become one flag on the device",
            prepare=with_late_guard,
        ),
        pair(
            "sync-explicit-device",
            timed,
            "the host no longer stops three times a step to read the clock",
            before_backward=time_with_events,
            after_backward=time_with_events,
            after_step=time_with_events,
        ),
        pair(
            "sync-host-roundtrip",
            Script(net=Net(layers=4), per_layer=match_on_host),
            "the assignment is made on the device: no trip, no idle device meanwhile",
            per_layer=match_on_device,
        ),
        pair(
            "sync-print-log-tensor",
            Script(bookkeeping_us=300, after_step=print_loss),
            "no formatting of a device tensor, four waits less",
            after_step=nothing,
        ),
        pair(
            "sync-device-scalar-index",
            Inference(net=Net(layers=3, linear_us=32, relu_us=8), iterations=6, per_iteration=table_by_device_step),
            "the schedule is indexed by a number of the host, so that iterations queue up",
            per_iteration=table_by_host_step,
        ),
        pair(
            "h2d-pinned-blocking",
            Script(batch=Tensor((32, 3, 128, 128), "float"), non_blocking=False, before_forward=prepare_targets),
            "the copy no longer waits for the step before it, so the targets are prepared while the device works",
            non_blocking=True,
        ),
        pair(
            "sync-lengths",
            Script(net=Net(linear_us=45), before_backward=pack_from_device, bookkeeping_us=200),
            "the lengths are at hand, so the backward pass is launched ahead",
            before_backward=pack_from_host,
        ),
        pair(
            "sync-gradscaler",
            Script(after_backward=scaled_twice, bookkeeping_us=480),
            "bfloat16 needs no scaler: two waits less, and the meters run while the device works",
            after_backward=nothing,
        ),
        launch_blocking(),
    ]


def launch_blocking() -> Pair:
    script = Script(net=Net(linear_us=24, relu_us=6))
    return Pair(
        "cuda-launch-blocking",
        Program("cuda-launch-blocking slow", script.make, launch_blocking=True),
        Program("cuda-launch-blocking fixed", script.make),
        "launches return at once, and the host runs ahead",
    )
