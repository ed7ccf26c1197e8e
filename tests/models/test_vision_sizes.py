"""Vision models have the sizes their libraries and papers publish."""

import itertools

import pytest

torch = pytest.importorskip("torch")

from suite_models import real_parameters  # noqa: E402

TORCHVISION = {  # its table of weights
    "alexnet": 61_100_840,
    "densenet121": 7_978_856,
    "mnasnet1_0": 4_383_312,
    "mobilenet_v2": 3_504_872,
    "mobilenet_v3_large": 5_483_032,
    "resnet152": 60_192_808,
    "resnext50_32x4d": 25_028_904,
    "shufflenet_v2_x1_0": 2_278_604,
    "squeezenet1_1": 1_235_496,
    "mobilenet_v2_quantized_qat": 3_504_872,
}


def conv(kernel: int, before: int, after: int) -> int:
    return kernel * kernel * before * after + after


def normed(before: int, between: int, after: int) -> int:
    """Two 3 x 3 convolutions without bias, each with its norm."""
    return 9 * before * between + 2 * between + 9 * between * after + 2 * after


def flow_net(before: int, after: int) -> int:
    """Super SloMo's U-Net as section 3.3 of arXiv 1712.00080 describes it."""
    down = conv(7, before, 32) + conv(7, 32, 32) + conv(5, 32, 64) + conv(5, 64, 64)
    down += sum(conv(3, above, below) + conv(3, below, below) for above, below in [(64, 128), (128, 256), (256, 512)])
    up = [(512, 512), (512, 256), (256, 128), (128, 64), (64, 32)]
    return down + 2 * conv(3, 512, 512) + sum(conv(3, a, b) + conv(3, 2 * b, b) for a, b in up) + conv(3, 32, after)


OWN = {
    "phlippe_densenet": 239_146,  # the table in the UvA course's tutorial 5, "Inception, ResNet and DenseNet"
    "phlippe_resnet": 272_378,
    # By hand, figure 1 of arXiv 1505.04597 with norms, padding, and a bilinear way up that keeps half of the channels.
    "pytorch_unet": normed(3, 64, 64) + normed(64, 128, 128) + normed(128, 256, 256) + normed(256, 512, 512)
    + normed(512, 512, 512) + normed(1024, 512, 256) + normed(512, 256, 128) + normed(256, 128, 64)
    + normed(128, 64, 64) + 2 * 64 + 2,
    "pytorch_CycleGAN_and_pix2pix": 2 * 11_378_179 + 2 * 2_764_737,  # its programs print 11.378 M and 2.765 M
    # By hand, tables 4 and 5 of arXiv 1711.09020 with five attributes; every norm of the generator has two numbers.
    "pytorch_stargan": 49 * 8 * 64 + 2 * 64 + 16 * 64 * 128 + 2 * 128 + 16 * 128 * 256 + 2 * 256
    + 12 * (9 * 256 * 256 + 2 * 256) + 16 * 256 * 128 + 2 * 128 + 16 * 128 * 64 + 2 * 64 + 49 * 64 * 3
    + conv(4, 3, 64) + sum(conv(4, 64 << depth, 128 << depth) for depth in range(5)) + 9 * 2048 + 5 * 4 * 2048,
    # By hand; the loss looks at the first ten convolutions of VGG-16.
    "Super_SloMo": flow_net(6, 4) + flow_net(20, 5) + conv(3, 3, 64) + conv(3, 64, 64) + conv(3, 64, 128)
    + conv(3, 128, 128) + conv(3, 128, 256) + 2 * conv(3, 256, 256) + conv(3, 256, 512) + 2 * conv(3, 512, 512),
}  # fmt: skip

# By hand for C4: ResNet-50 without classifier and norms, proposals on 1024 channels, two predictions a box.
CONVOLUTIONS = 25_557_032 - 1000 * 2049 - 53_120
C4_HEADS = conv(3, 1024, 1024) + conv(1, 1024, 15 * 5) + (2048 + 1) * 81 * 5
C4_MASK = 4 * 2048 * 256 + 256 + conv(1, 256, 81)

DETECTORS = {
    "detectron2_fasterrcnn_r_50_c4": CONVOLUTIONS + C4_HEADS,
    "detectron2_maskrcnn_r_50_c4": CONVOLUTIONS + C4_HEADS + C4_MASK,
    "fasterrcnn_resnet50_fpn": 41_755_286 + 53_120,  # without weights its backbone keeps learned norms
    "vision_maskrcnn": 44_401_393 + 53_120,
    # torchvision's tables for 91 labels, less ten and what they cost
    "detectron2_fasterrcnn_r_50_fpn": 41_755_286 - 10 * 5 * 1025,
    "detectron2_maskrcnn_r_50_fpn": 44_401_393 - 10 * (5 * 1025 + 257),
    "detectron2_maskrcnn": 44_401_393 - 10 * (5 * 1025 + 257),
    "detectron2_fcos_r_50_fpn": 32_269_600 - 11 * (9 * 256 + 1),
}

DETECTORS_ROUNDED = {  # millions, table 1 of arXiv 2005.12872, which trains detectron2's
    "detectron2_fasterrcnn_r_50_fpn": 42,
    "detectron2_fasterrcnn_r_101_fpn": 60,
    "detectron2_fasterrcnn_r_50_dc5": 166,
}

DEEPER = 17 * (1024 * 256 + 9 * 256 * 256 + 256 * 1024)
"""The 17 blocks that ResNet-101 has more than ResNet-50, norms aside."""


@pytest.mark.parametrize("name", DETECTORS)
def test_detectors_have_published_sizes(name: str) -> None:
    assert real_parameters(name) == DETECTORS[name]


@pytest.mark.parametrize("name", DETECTORS_ROUNDED)
def test_detectors_agree_with_rounded_sizes(name: str) -> None:
    assert real_parameters(name) / 1e6 == pytest.approx(DETECTORS_ROUNDED[name], abs=0.7)


@pytest.mark.parametrize("rest", ["fasterrcnn_r_{}_c4", "fasterrcnn_r_{}_dc5", "maskrcnn_r_{}_c4", "maskrcnn_r_{}_fpn"])
def test_detectors_of_101_layers_are_deeper_by_17_blocks(rest: str) -> None:
    assert (
        real_parameters(f"detectron2_{rest.format(101)}") - real_parameters(f"detectron2_{rest.format(50)}") == DEEPER
    )


def matting() -> int:
    """The network of arXiv 2004.00626, section 3.1: four encoders, choices, 7 shared blocks, and 3 for each decoder."""

    def layer(kernel: int, before: int, after: int) -> int:
        return conv(kernel, before, after) + 2 * after

    encoders = sum(layer(7, before, 64) + layer(3, 64, 128) + layer(3, 128, 256) for before in (3, 3, 1, 4))
    chosen = 3 * layer(1, 512, 64) + layer(1, 256 + 3 * 64, 256)
    decoders = sum(layer(3, 256, 128) + layer(3, 128, 64) + conv(7, 64, after) for after in (1, 3))
    return encoders + chosen + (7 + 2 * 3) * 2 * layer(3, 256, 256) + decoders


DOCTR = {"doctr_det_predictor": 25.4, "doctr_reco_predictor": 15.8}  # millions, the tables of its documentation


def test_background_matting_has_the_layers_of_its_paper() -> None:
    # A student, its teacher, and two critics of the size of CycleGAN's.
    assert real_parameters("Background_Matting") == 2 * matting() + 2 * 2_764_737


@pytest.mark.parametrize("name", DOCTR)
def test_doctr_models_have_the_size_of_its_tables(name: str) -> None:
    assert real_parameters(name) / 1e6 == pytest.approx(DOCTR[name], abs=0.05)


def test_efficientdet_has_the_size_of_its_paper() -> None:
    # effdet's table says 6.63 million; arXiv 1911.09070, table 2, 6.6.
    assert real_parameters("timm_efficientdet") == 6_625_898


def noise_net(width: int, factors: tuple[int, ...], words: int, colours: int) -> int:
    """The U-Net of arXiv 2006.11239 with two blocks a level, scales and shifts, and one look around at the bottom."""
    told = 4 * width

    def block(before: int, after: int) -> int:
        shortcut = conv(1, before, after) if before != after else 0
        convolutions = conv(3, before, after) + conv(3, after, after) + shortcut
        return convolutions + 2 * before + 2 * after + conv(1, told, 2 * after)

    channels = [width, *(width * factor for factor in factors)]
    levels = list(itertools.pairwise(channels))
    deepest = channels[-1]
    total = conv(1, width, told) + conv(1, told, told) + conv(1, 512, told) + conv(3, colours, width)
    total += sum(block(a, b) + block(b, b) + block(2 * b, b) + block(b, a) for a, b in levels) + 2 * block(
        *[deepest] * 2
    )
    total += 4 * conv(1, deepest, deepest) + 2 * deepest + (conv(1, words, deepest) if words else 0)
    return total + 2 * width + conv(3, width, 3)


def test_dalle2_has_the_size_of_its_parts() -> None:
    clip = 151_277_313 - 1  # OpenAI's ViT-B/32, without its temperature
    prior = 6 * (4 * (512 * 512 + 512) + 2 * 512 * 2048 + 2048 + 512 + 4 * 512) + 512 + 512 * 512
    unets = noise_net(128, (1, 2, 4, 8), 512, 3) + noise_net(16, (1, 2, 4, 8, 16), 0, 6)
    assert real_parameters("DALLE2_pytorch") == clip + prior + unets


LATER = {
    "sam": 93_735_472 + 2 * 128,  # sam_vit_b; the library counts the random directions of places as well
    "stable_diffusion_unet": 859_520_964,  # the model card of Stable Diffusion v1: 860 million
}


@pytest.mark.parametrize("name", LATER)
def test_later_vision_models_have_published_sizes(name: str) -> None:
    assert real_parameters(name) == LATER[name]


TIMM = {  # millions of parameters in its table of results on ImageNet
    "timm_efficientnet": 5.29,
    "timm_nfnet": 71.49,
    "timm_regnet": 51.82,
    "timm_resnest": 10.61,
    "timm_vision_transformer": 22.05,
    "timm_vision_transformer_large": 1012.61,
    "timm_vovnet": 22.60,
}


@pytest.mark.parametrize("name", OWN)
def test_models_of_our_own_have_the_size_of_their_papers(name: str) -> None:
    assert real_parameters(name) == OWN[name]


@pytest.mark.parametrize("name", TIMM)
def test_timm_models_have_the_size_of_its_table(name: str) -> None:
    assert real_parameters(name) / 1e6 == pytest.approx(TIMM[name], abs=0.006)


@pytest.mark.parametrize("name", TORCHVISION)
def test_torchvision_models_have_the_size_of_its_tables(name: str) -> None:
    assert real_parameters(name) == TORCHVISION[name]
