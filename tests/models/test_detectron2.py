"""detectron2's models run on detectron2 where it is installed, and say what they run on."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from suite_models import needs  # noqa: E402

from torchdiag.models.catalogue import MODELS  # noqa: E402
from torchdiag.models.workload import Setting  # noqa: E402


class Recorder:
    """Takes any attribute at any depth, as a configuration does."""

    def __getattr__(self, name):
        self.__dict__[name] = found = Recorder()
        return found


class Detector(torch.nn.Module):
    """Sums the images where detectron2 would detect."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, inputs):
        total = self.scale * sum(each["image"].mean() for each in inputs)
        return {"loss": total} if self.training else [total]


@pytest.fixture
def library(monkeypatch):
    """A stand-in for detectron2 that remembers which configurations were asked for."""
    asked = []

    def get_config(name, trained):
        asked.append((name, trained))
        return Recorder()

    class Boxed(SimpleNamespace):
        def __init__(self, *parts):
            super().__init__(parts=parts)

    modules = {
        "detectron2": {"__path__": []},
        "detectron2.model_zoo": {"get_config": get_config},
        "detectron2.config": {"instantiate": lambda config: Detector()},
        "detectron2.modeling": {"build_model": lambda config: Detector()},
        "detectron2.structures": {"Instances": Boxed, "Boxes": Boxed, "BitMasks": Boxed},
    }
    for name, members in modules.items():
        module = ModuleType(name)
        module.__dict__.update(members)
        module.__spec__ = SimpleNamespace(name=name)
        monkeypatch.setitem(sys.modules, name, module)
    return asked


def build(name: str, mode: str):
    needs(name)
    return MODELS[name].build(Setting(mode, torch.device("cpu"), torch.float32, 1, "tiny"))


CONFIGURATIONS = {
    "detectron2_fasterrcnn_r_101_dc5": "COCO-Detection/faster_rcnn_R_101_DC5_3x.yaml",
    "detectron2_maskrcnn_r_50_c4": "COCO-InstanceSegmentation/mask_rcnn_R_50_C4_3x.yaml",
    "detectron2_fcos_r_50_fpn": "COCO-Detection/fcos_R_50_FPN_1x.py",
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_detectron2_is_used_where_it_is_installed(name, mode, library):
    workload = build(name, mode)
    workload.step()
    assert library == [(CONFIGURATIONS[name], False)]
    assert workload.note == "detectron2's own"


@pytest.mark.skipif("detectron2" in sys.modules, reason="detectron2 is installed")
def test_a_rebuild_says_that_it_is_one():
    assert build("detectron2_fcos_r_50_fpn", "eval").note.startswith("rebuilt from torchvision's parts")


def test_a_detector_without_learned_weights_finds_something():
    (found,) = build("detectron2_maskrcnn_r_50_c4", "eval").step()
    assert len(found["boxes"]) == len(found["masks"]) > 0
