"""What the name of a Python frame says, and whose code it points at."""

import pytest

from torchdiag.timeline import frames
from torchdiag.timeline.frames import Frame

USER = [
    "train.py(88): step",
    "/home/me/project/train.py(88): step",
    "C:/Users/me/project/train.py(88): step",
    "C:\\Users\\me\\project\\train.py(88): step",
    "profile.py(3): main",
    "transformers/models/owlv2/image_processing_owlv2.py(503): post_process",
    "/usr/lib/python3/dist-packages/scipy/ndimage/_interpolation.py(739): zoom",
    "/opt/conda/lib/python3.11/site-packages/PIL/Image.py(2150): resize",
    "torchvision/models/resnet.py(89): forward",
    "/opt/conda/lib/python3.11/site-packages/torchvision/models/resnet.py(89): forward",
    "torch_ops.py(12): call",
    "torchdiag/models/stepping.py(24): step",
    "/home/me/torch/train.py(1): <module>",
    "/sgl-workspace/sglang/python/sglang/srt/model.py(4): forward",
    "/tmp/ipykernel_812/1234.py(3): <module>",
    "<ipython-input-5-1f2e>(3): <module>",
    "<stdin>(1): <module>",
]
NOT_USER = [
    "torch/nn/modules/module.py(1532): _call_impl",
    "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py(1532): _call_impl",
    "C:\\envs\\a\\Lib\\site-packages\\torch\\nn\\modules\\linear.py(114): forward",
    "/opt/pytorch/torch/utils/data/dataloader.py(630): __next__",
    "/opt/pytorch/torch/_dynamo/eval_frame.py(465): _fn",
    "functorch/_src/vmap.py(3): f",
    "threading.py(1032): _bootstrap",
    "contextlib.py(112): decorate_context",
    "multiprocessing/spawn.py(122): spawn_main",
    "/usr/lib/python3.10/threading.py(973): _bootstrap",
    "C:/Users/me/miniconda3/lib/threading.py(973): _bootstrap",
    "distutils/version.py(1): f",
    "<frozen importlib._bootstrap>(241): _call_with_frames_removed",
    "<string>(2): __init__",
    "<eval_with_key>.50(4): forward",
    "/tmp/torchinductor_root/ag/caghi6.py(57): call",
    "<built-in method item of Tensor object at 0x7f15098cb2e0>",
    "<built-in function isinstance>",
    "nn.Module: Linear_0",
    "Python GC",
    "torchdiag/capture/optimizer_steps.py(74): step",
    "/opt/conda/lib/python3.11/site-packages/torchdiag/capture/optimizer_steps.py(74): step",
]


@pytest.mark.parametrize("name", USER)
def test_a_persons_code(name):
    assert frames.is_user(name)


@pytest.mark.parametrize("name", NOT_USER)
def test_torch_the_standard_library_and_generated_code_are_not_a_persons(name):
    assert not frames.is_user(name)


def test_a_frame_is_file_line_and_function():
    assert frames.parse("a/b (2).py(88): step") == Frame("a/b (2).py", 88, "step")
    assert frames.parse("a.py(5): <lambda>") == Frame("a.py", 5, "<lambda>")
    assert frames.parse("<built-in method f of A object at 0x1>(1): x") is None
    assert frames.parse("nn.Module: Linear_0") is None


@pytest.mark.parametrize(
    ("file", "label"),
    [
        ("/home/me/train.py", "train.py:88 step"),
        ("C:\\me\\train.py", "train.py:88 step"),
        ("torch/cuda/__init__.py", "cuda/__init__.py:88 step"),
        ("__init__.py", "__init__.py:88 step"),
    ],
)
def test_labels_are_short(file, label):
    assert Frame(file, 88, "step").label == label


def test_addresses_are_left_out():
    name = "<built-in method item of Tensor object at 0x7f15098cb2e0>"
    assert frames.without_address(name) == "<built-in method item of Tensor object>"


def test_call_stacks_are_put_innermost_first():
    first = "a.py(6): f;torch/nn/x.py(1): g;main.py(36): <module>;"
    assert frames.call_stack(first) == ["a.py(6): f", "torch/nn/x.py(1): g", "main.py(36): <module>"]
    outermost_first = "a.py(6): work;<built-in method zeros of type object at 0x7f>;"
    assert frames.call_stack(outermost_first)[1] == "a.py(6): work"
    assert frames.call_stack("main.py(1): <module>;a.py(6): f")[0] == "a.py(6): f"
    assert frames.call_stack("") == []


def test_the_innermost_persons_frame_of_a_call_stack():
    stack = ["torch/nn/x.py(1): g", "a.py(6): f", "main.py(36): <module>"]
    assert frames.innermost_user(stack) == Frame("a.py", 6, "f")
    assert frames.innermost_user(["torch/nn/x.py(1): g"]) is None


def test_frames_that_a_data_loader_called():
    stack = ["data.py(3): __getitem__", "torch/utils/data/_utils/fetch.py(44): fetch", "train.py(4): <module>"]
    assert frames.inside_loader(stack) == ["data.py(3): __getitem__"]
    assert frames.inside_loader(["train.py(4): <module>"]) == []


@pytest.mark.parametrize("line", ["9" * 5000, "\u00b2", "\u0663"])
def test_line_numbers_that_are_none_are_no_line(line):
    assert frames.parse(f"a.py({line}): f") is None
    assert Frame("a.py", 1, "f").running(f"a.py:{line}") == Frame("a.py", 1, "f")
