"""Every model builds, steps in each of its modes, and has the size its paper or library publishes."""

import pytest

torch = pytest.importorskip("torch")

from suite_models import needs, real_parameters  # noqa: E402

from torchdiag.errors import TorchdiagError  # noqa: E402
from torchdiag.models.catalogue import MODELS, find  # noqa: E402
from torchdiag.models.vision.yolov3 import Objects, YoloLoss  # noqa: E402
from torchdiag.models.workload import Setting  # noqa: E402

CASES = [(name, mode) for name, entry in MODELS.items() for mode in entry.modes]

PUBLISHED_PARAMETERS = {
    "resnet18": 11_689_512,  # torchvision's table of weights
    "resnet50": 25_557_032,
    "vgg16": 138_357_544,
    "resnet50_quantized_qat": 25_557_032,
    "yolov3": 61_949_149,  # Darknet's yolov3.cfg, 80 classes
    "dcgan": 3_576_704 + 2_765_568,  # 64x64 images, 100 latent numbers, width 64
    # 8 tables of 1e6 x 64; 512-512-512-64 below; 64 + 36 dots -> 1024-1024-1024 -> 1 above
    "dlrm": 8 * 64_000_000
    + 2 * (512 * 512 + 512) + (512 * 64 + 64)
    + (100 * 1024 + 1024) + 2 * (1024 * 1024 + 1024) + (1024 + 1),
}  # fmt: skip


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_a_tiny_model_steps_in_every_mode(name: str, mode: str) -> None:
    needs(name)
    entry = MODELS[name]
    setting = Setting(mode, torch.device("cpu"), torch.float32, entry.tiny_batch, "tiny")
    workload = entry.build(setting)
    first = workload.step()
    second = workload.step()
    if mode == "train":
        assert torch.isfinite(first).all()
        assert torch.isfinite(second).all()
        changed = [
            parameter for module in workload.modules for parameter in module.parameters() if parameter.grad is not None
        ]
        assert changed


@pytest.mark.parametrize("name", PUBLISHED_PARAMETERS)
def test_real_sizes_are_the_published_ones(name: str) -> None:
    assert real_parameters(name) == PUBLISHED_PARAMETERS[name]


def test_the_same_seed_gives_the_same_loss() -> None:
    entry, losses = MODELS["dcgan"], []
    for _ in range(2):
        setting = Setting("train", torch.device("cpu"), torch.float32, 2, "tiny", seed=7)
        losses.append(entry.build(setting).step().item())
    assert losses[0] == losses[1]


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    assert find("YOLOv3") is MODELS["yolov3"]
    with pytest.raises(TorchdiagError, match=r"Did you mean .*resnet50"):
        find("resnet5")


def test_yolo_assigns_an_object_to_its_best_prior_alone() -> None:
    # A 30x61 object centred in cell (row 2, column 3) of stride 16 fits the first prior of the medium scale exactly.
    objects = Objects(torch.tensor([[[56.0, 40.0, 30.0, 61.0]]]), torch.tensor([[5]]))
    outputs = [torch.zeros(1, 3, 96 // stride, 128 // stride, 85, requires_grad=True) for stride in (8, 16, 32)]
    YoloLoss(torch.device("cpu"), torch.float32)(outputs, objects).backward()
    touched = [
        (scale, *index)
        for scale, out in enumerate(outputs)
        for index in out.grad[..., 5:].abs().sum(-1).nonzero().tolist()
    ]
    assert touched == [(1, 0, 0, 2, 3)]
    # Objectness is pulled up there (negative gradient) and nowhere else.
    up = [(scale, *index) for scale, out in enumerate(outputs) for index in (out.grad[..., 4] < 0).nonzero().tolist()]
    assert up == [(1, 0, 0, 2, 3)]
