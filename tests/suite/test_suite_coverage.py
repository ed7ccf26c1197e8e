"""Coverage counted by hand."""

from suite_outcomes import case, figures, outcome

from torchdiag.capture.functions_pass import is_public
from torchdiag.suite.coverage import coverage
from torchdiag.suite.coverage_page import page


def run(subject, operators, functions, **more):
    return outcome(
        case(subject, **more),
        figures=figures(
            operators=dict.fromkeys(operators, 3), functions=None if functions is None else tuple(functions)
        ),
    )


RUNS = [
    run("resnet50", ["aten::conv2d", "aten::relu"], ["torch.relu"]),
    run("resnet50", ["aten::conv2d"], ["torch.relu"], mode="eval"),
    run("dlrm", ["aten::embedding_bag", "aten::mm"], ["torch.cat"]),
    *(
        run(name, ["aten::conv2d"], ["torch.cat"])
        for name in ("pytorch_unet", "detectron2_fcos_r_50_fpn", "vision_maskrcnn", "speech_transformer", "hf_Bert")
    ),
    # Evaluation does not count for MLPerf, whose models are trained.
    run("hf_Bert", ["aten::softmax"], [], mode="eval"),
    run("soft_actor_critic", ["aten::mm", "aten::tanh"], ["torch.tanh", "torch.Tensor.add"]),
    # Compiled: left out.
    run("resnet18", ["aten::everything"], None, compile="default"),
]


def test_distinct_names_are_counted_once():
    found = coverage(RUNS)
    assert found.all.operators == {
        "aten::conv2d",
        "aten::relu",
        "aten::embedding_bag",
        "aten::mm",
        "aten::softmax",
        "aten::tanh",
    }
    assert found.all.functions == {"torch.relu", "torch.cat", "torch.tanh", "torch.Tensor.add"}
    assert found.mlperf.operators == {"aten::conv2d", "aten::relu", "aten::embedding_bag", "aten::mm"}
    assert found.mlperf.functions == {"torch.relu", "torch.cat"}
    assert (found.operator_ratio, found.function_ratio) == (6 / 4, 4 / 2)
    assert found.absent == ()
    assert found.alone["dlrm"].operators == {"aten::embedding_bag"}
    assert found.alone["resnet50"].operators == {"aten::relu"}
    assert {domain: len(covered.operators) for domain, covered in found.domains.items()} == {
        "vision": 2,
        "recommendation": 2,
        "language": 2,
        "reinforcement learning": 2,
    }
    assert page(found).answer.startswith("6 ATen operators and 4 public functions of torch: 1.5 and 2.0 times")


def test_without_all_of_mlperfs_there_is_no_ratio():
    found = coverage(RUNS[:1])
    assert (found.operator_ratio, found.function_ratio) == (None, None)
    assert "hf_Bert" in found.absent and "resnet50" not in found.absent
    assert page(found).answer.endswith("1 of the 7 MLPerf-like models were trained, so there is no ratio")


def test_what_is_a_public_function():
    names = {
        "torch.nn.functional.conv2d": True,
        "torch.Tensor.__getitem__": True,
        "torch.Tensor.add_": True,
        "torch.Tensor.shape.__get__": False,
        "torch.Tensor.grad.__set__": False,
        "torch._C._nn.gelu": False,
        "torch._foreach_add": False,
        "profiler._record_function_enter_new": False,
    }
    assert {name: is_public(name) for name in names} == names
