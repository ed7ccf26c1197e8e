"""What the catalogue says of the models: names, domains, modes and batches, without importing any framework."""

import subprocess
import sys

import pytest

from torchdiag.errors import TorchdiagError
from torchdiag.models.catalogue import MODELS
from torchdiag.models.entry import Entry

# The paper's suite: training and evaluation batch, None where the model does not have the mode.
BATCHES = {
    "BERT_pytorch": (16, 16),
    "attention_is_all_you_need_pytorch": (256, 32),
    "fambench_xlmr": (96, 96),
    "fastNLP_Bert": (6, 1),
    "hf_Albert": (8, 1),
    "hf_Bart": (4, 1),
    "hf_Bert": (4, 1),
    "hf_Bert_large": (4, 1),
    "hf_BigBird": (2, 1),
    "hf_DistilBert": (8, 1),
    "hf_GPT2": (4, 1),
    "hf_GPT2_large": (4, 1),
    "hf_Longformer": (2, 1),
    "hf_Reformer": (8, 1),
    "hf_T5": (8, 1),
    "hf_T5_base": (8, 1),
    "hf_T5_large": (2, 1),
    "LearningToPaint": (96, 96),
    "drq": (1, 1),
    "soft_actor_critic": (256, 256),
    "speech_transformer": (32, 1),
    "tacotron2": (64, 64),
    "tts_angular": (64, 64),
    "dlrm": (2048, 2048),
    "nvidia_deeprecommender": (256, 256),
    "demucs": (64, 8),
    "functorch_dp_cifar10": (64, 64),
    "functorch_maml_omniglot": (1, 1),
    "lennard_jones": (1000, 1000),
    "maml": (None, 1),
    "maml_omniglot": (32, 32),
    "moco": (32, 32),
    "opacus_cifar10": (64, 64),
    "pyhpc_equation_of_state": (None, 1_048_576),
    "pyhpc_isoneutral_mixing": (None, 1_048_576),
    "pyhpc_turbulent_kinetic_energy": (None, 1_048_576),
    "pytorch_struct": (200, None),
    "Background_Matting": (4, 1),
    "DALLE2_pytorch": (4, 1),
    "Super_SloMo": (6, 6),
    "alexnet": (128, 128),
    "dcgan": (32, 256),
    "densenet121": (256, 64),
    "detectron2_fasterrcnn_r_101_c4": (1, 1),
    "detectron2_fasterrcnn_r_101_dc5": (1, 1),
    "detectron2_fasterrcnn_r_101_fpn": (1, 1),
    "detectron2_fasterrcnn_r_50_c4": (1, 1),
    "detectron2_fasterrcnn_r_50_dc5": (1, 1),
    "detectron2_fasterrcnn_r_50_fpn": (1, 1),
    "detectron2_fcos_r_50_fpn": (1, 1),
    "detectron2_maskrcnn": (1, 1),
    "detectron2_maskrcnn_r_101_c4": (1, 1),
    "detectron2_maskrcnn_r_101_fpn": (1, 1),
    "detectron2_maskrcnn_r_50_c4": (1, 1),
    "detectron2_maskrcnn_r_50_fpn": (1, 1),
    "doctr_det_predictor": (None, 1),
    "doctr_reco_predictor": (None, 1),
    "mnasnet1_0": (32, 32),
    "mobilenet_v2": (96, 16),
    "mobilenet_v2_quantized_qat": (96, 96),
    "mobilenet_v3_large": (32, 32),
    "phlippe_densenet": (128, 128),
    "phlippe_resnet": (128, 128),
    "pytorch_CycleGAN_and_pix2pix": (1, 1),
    "pytorch_stargan": (16, 16),
    "pytorch_unet": (1, 1),
    "resnet152": (32, 32),
    "resnet18": (16, 8),
    "resnet50": (32, 32),
    "resnet50_quantized_qat": (32, 32),
    "resnext50_32x4d": (8, 8),
    "shufflenet_v2_x1_0": (128, 64),
    "squeezenet1_1": (32, 16),
    "timm_efficientdet": (16, 128),
    "timm_efficientnet": (32, 64),
    "timm_nfnet": (128, 128),
    "timm_regnet": (32, 32),
    "timm_resnest": (32, 32),
    "timm_vision_transformer": (8, 8),
    "timm_vision_transformer_large": (8, 8),
    "timm_vovnet": (32, 32),
    "vgg16": (64, 4),
    "vision_maskrcnn": (4, 4),
    "yolov3": (16, 8),
}

FIXED = {
    "Background_Matting",
    "drq",
    "functorch_maml_omniglot",
    "maml",
    "maml_omniglot",
    "pytorch_CycleGAN_and_pix2pix",
    "pytorch_stargan",
    "soft_actor_critic",
}

COUNTS = {"vision": 47, "language": 17, "speech": 3, "recommendation": 2, "reinforcement learning": 3, "other": 12}


@pytest.mark.parametrize("name", BATCHES)
def test_modes_and_batches_are_those_of_the_paper(name: str) -> None:
    entry = MODELS[name]
    assert (entry.batch.get("train"), entry.batch.get("eval")) == BATCHES[name]
    assert entry.fixed_batch == (name in FIXED)


@pytest.mark.parametrize("domain", COUNTS)
def test_a_domain_has_as_many_models_as_in_the_paper(domain: str) -> None:
    assert sum(entry.domain == domain and not entry.later for entry in MODELS.values()) == COUNTS[domain]


def test_naming_the_models_imports_no_framework() -> None:
    code = "import sys; import torchdiag.models.catalogue; print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_package_is_named_with_the_line_that_installs_it() -> None:
    entry = Entry("odd", "other", "none", "other.odd:build", {"eval": 1}, requires=("sys", "no_such_package_here"))
    assert entry.missing_packages() == ["no_such_package_here"]
    assert entry.install_line() == "pip install no_such_package_here"
    with pytest.raises(TorchdiagError, match=r"odd needs no_such_package_here: run `pip install no_such_package_here`"):
        entry.build(None)  # type: ignore[arg-type]


def test_a_mode_that_a_model_lacks_is_refused() -> None:
    with pytest.raises(TorchdiagError, match="maml has no train mode; it has eval"):
        MODELS["maml"].default_batch("train", "tiny")
