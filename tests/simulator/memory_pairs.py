"""Bugs around device memory, and the same scripts without them."""

from dataclasses import replace

from simulator.simulated_machine import Run
from simulator.simulated_program import Pair
from simulator.torch_calls import Session, Tensor, Torch
from simulator.training_parts import AdamW, Net
from simulator.training_script import Script, nothing, pair

WIDE = Net(layers=4, width=4096, batch=256, linear_us=90, relu_us=12)


def longer_each_step(step: int) -> Net:
    """Sequences get longer; the kernels take what they take."""
    return replace(WIDE, batch=WIDE.batch * (step + 1))


def longest(step: int) -> Net:
    """All padded to the longest."""
    return replace(WIDE, batch=WIDE.batch * 6)


def empty_cache(t: Torch, step: int) -> Run:
    t.session.allocator.give_back()
    with t.frame("torch/cuda/memory.py(217): empty_cache"), t.at(231).builtin("_cuda_emptyCache"):
        for _ in range(t.session.allocator.empty()):
            yield from t.host.free()


def flush_and_retry(t: Torch, layer: int) -> Run:
    """The driver has no more memory: the allocator frees what it has cached and asks again."""
    if layer == 2:
        with t.at(38).op("aten::empty", [256, 65_536], 15, 0, "cuda:0", False, None):
            yield from t.host.allocate()
            for _ in range(14):
                yield from t.host.free()
            yield from t.host.allocate()


def fill_new_memory(session: Session) -> None:
    session.show_new_memory = session.fill_new_memory = True


def leave_new_memory(session: Session) -> None:
    session.show_new_memory = True


def memory_pairs() -> list[Pair]:
    narrow = Net(layers=10, linear_us=13, relu_us=4)
    return [
        pair(
            "alloc-cudamalloc-steady",
            Script(net_of_step=longer_each_step, batch=Tensor((64, 512), "long int")),
            "batches padded to one length are served from the cache",
            net_of_step=longest,
        ),
        pair(
            "empty-cache-in-loop",
            Script(net=WIDE, after_step=empty_cache),
            "no wait for the device, and the memory of a step serves the next one",
            after_step=nothing,
        ),
        pair(
            "alloc-retry-flush",
            Script(net=WIDE, per_layer=flush_and_retry),
            "a batch that fits leaves the cache alone",
            per_layer=None,
        ),
        pair(
            "zero-grad-memset",
            Script(net=narrow, optimizer=AdamW(narrow.parameters, set_to_none=False)),
            "no memset per gradient, and no addition to what was cleared",
            optimizer=AdamW(narrow.parameters),
        ),
        pair(
            "deterministic-fill",
            Script(net=Net(batch=8192, linear_us=70), batch=Tensor((64, 512), "long int"), prepare=fill_new_memory),
            "new tensors are not filled before they are written",
            prepare=leave_new_memory,
        ),
    ]
