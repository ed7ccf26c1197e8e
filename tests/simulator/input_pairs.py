"""Bugs in how batches are made, and the same scripts without them."""

from simulator.simulated_machine import Run
from simulator.simulated_program import Pair
from simulator.torch_calls import Tensor, Torch
from simulator.training_parts import Loader, Net
from simulator.training_script import Script, nothing, pair


def augment(t: Torch, step: int) -> Run:
    """Crops, flips and normalisation of the batch in the loop itself."""
    image = Tensor((3, 224, 224), "float")
    with t.frame("augment.py(33): __call__"):
        for _ in range(4):
            with t.at(36).frame("PIL/Image.py(2364): resize"), t.at(2460).builtin("resize of ImagingCore object"):
                t.think(310)
            with t.at(37).frame("torchvision/transforms/functional.py(326): normalize"):
                with t.at(350).builtin("sub_ of Tensor object"), t.op("aten::sub_", image, image, 1):
                    t.think(70)
                with t.at(350).builtin("div_ of Tensor object"), t.op("aten::div_", image, image):
                    t.think(70)
    yield from ()


def input_pairs() -> list[Pair]:
    return [
        pair(
            "dataloader-wait",
            Script(loader=lambda: Loader(workers=2, batch_us=5_200)),
            "eight workers make a batch in 0.65 ms instead of 2.6 ms",
            loader=lambda: Loader(workers=8, batch_us=5_200),
        ),
        pair(
            "dataloader-in-process",
            Script(loader=lambda: Loader(workers=0, batch_us=2_400)),
            "four workers make batches meanwhile",
            loader=lambda: Loader(workers=4, batch_us=2_400),
        ),
        pair(
            "host-preprocess-main-thread",
            Script(net=Net(linear_us=70), before_forward=augment, loader=lambda: Loader(workers=4, batch_us=1_200)),
            "the workers augment too, and still keep up",
            before_forward=nothing,
            loader=lambda: Loader(workers=4, batch_us=3_000),
        ),
    ]
