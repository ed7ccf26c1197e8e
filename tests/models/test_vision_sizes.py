"""Vision models have the sizes their libraries and papers publish."""

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


@pytest.mark.parametrize("name", TORCHVISION)
def test_torchvision_models_have_the_size_of_its_tables(name: str) -> None:
    assert real_parameters(name) == TORCHVISION[name]
