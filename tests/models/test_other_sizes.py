"""Recommendation, reinforcement learning and the rest have the sizes that papers publish or that a hand count gives."""

import pytest

pytest.importorskip("torch")

from suite_models import real_parameters

RESNET18, RESNET50 = 11_689_512, 25_557_032  # torchvision's table of weights, 1000 classes
ITEMS = 197_951
OMNIGLOT_LAYER = 64 * 64 * 9 + 64 + 2 * 64


def perceptron(inputs: int, hidden: int, outputs: int) -> int:
    return (inputs + 1) * hidden + (hidden + 1) * hidden + (hidden + 1) * outputs


def drq() -> int:
    convolutions = 9 * 32 * 9 + 32 + 3 * (32 * 32 * 9 + 32)
    projection = 32 * 35 * 35 * 50 + 50 + 2 * 50
    actor, critics = projection + perceptron(50, 1024, 12), projection + 2 * perceptron(56, 1024, 1)
    return convolutions + actor + critics


def learning_to_paint() -> int:
    # The painter is ResNet-18 with nine channels in, 3x3 at the door, a shortcut in the first stage and 65 numbers out.
    painter = RESNET18 - 64 * 3 * 49 + 64 * 9 * 9 + (64 * 64 + 2 * 64) - 513_000 + (512 * 65 + 65)
    # The critic's weight norms keep a length an output channel besides the direction, and a bias; TReLU a number.
    widths = [(64, 64), (64, 128), (128, 256), (256, 512)]

    def convolution(before: int, after: int, edge: int) -> int:
        return before * after * edge * edge + 2 * after

    critic = convolution(12, 64, 3) + 1 + 512 + 1
    for before, after in widths:
        critic += convolution(before, after, 3) + 3 * convolution(after, after, 3) + convolution(before, after, 1) + 4
    judge = sum(
        convolution(before, after, 5) for before, after in ((6, 16), (16, 32), (32, 64), (64, 128), (128, 1))
    ) + 4  # fmt: skip
    renderer = sum((before + 1) * after for before, after in ((10, 512), (512, 1024), (1024, 2048), (2048, 4096)))
    renderer += sum(
        (before * 9 + 1) * after for before, after in ((16, 32), (32, 32), (8, 16), (16, 16), (4, 8), (8, 4))
    )
    return painter + critic + judge + renderer


def grammar() -> int:
    layer = 256 * 256 + 256
    # Start, 30 spans and 30 classes as vectors; two scorers of a layer and two residuals of two; rules from a span.
    return 61 * 256 + 5 * layer + 257 * 30 + 5 * layer + 257 * 5000 + 257 * 60 * 60


COUNTED = {
    "nvidia_deeprecommender": 2 * (ITEMS * 512 + 512 * 512 + 512 * 1024) + 3 * 512 + 1024 + 512 + ITEMS,
    "soft_actor_critic": perceptron(3, 256, 2) + 2 * perceptron(4, 256, 1),
    "drq": drq(),
    "LearningToPaint": learning_to_paint(),
    "functorch_dp_cifar10": RESNET18 - 513_000 + 5130,
    "opacus_cifar10": RESNET18 - 513_000 + 5130,
    "moco": 2 * (RESNET50 - 2_049_000 + 2048 * 128 + 128),
    "lennard_jones": 2 * 16 + 3 * (16 * 16 + 16) + 17,
    "maml_omniglot": (9 * 64 + 3 * 64) + 2 * OMNIGLOT_LAYER + 64 * 5 + 5,
    "functorch_maml_omniglot": (9 * 64 + 3 * 64) + 2 * OMNIGLOT_LAYER + 64 * 5 + 5,
    "maml": (9 * 64 + 3 * 64) + 2 * OMNIGLOT_LAYER + (64 * 64 * 4 + 3 * 64) + 64 * 5 + 5,
    "pytorch_struct": grammar(),
    "basic_gnn_gcn": 3 * (64 * 64 + 64),
    "basic_gnn_sage": 3 * (2 * 64 * 64 + 64),
    "pyhpc_equation_of_state": 0,
    "pyhpc_isoneutral_mixing": 0,
    "pyhpc_turbulent_kinetic_energy": 0,
    "microbench_unbacked_tolist_sum": 1,
}


@pytest.mark.parametrize("name", COUNTED)
def test_other_models_have_the_size_that_a_hand_count_gives(name: str) -> None:
    assert real_parameters(name) == COUNTED[name]


def test_demucs_takes_the_space_its_paper_says() -> None:
    # arXiv 1911.13254, table 2: 1014 MB for 64 channels, in 32-bit numbers and units of 2^20 bytes.
    assert real_parameters("demucs") * 4 / 2**20 == pytest.approx(1014, abs=1)
