"""Suite files: what each key means, and that every kind of mistake is told with its file and line."""

import pytest

from torchdiag.errors import TorchdiagError
from torchdiag.models import catalogue
from torchdiag.suite import shipped, suite_file
from torchdiag.suite.cases import Overrides, plan


def read(tmp_path, text, **more):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return suite_file.read(path, **more)


MISTAKES = [
    ("run = [", 1, "this is no TOML"),
    ('description = "x"\nrun = 3 4', 2, "this is no TOML"),
    ('description = "x"', 1, "it names nothing to run"),
    ("run = 3", 1, "write [[run]], with two brackets"),
    ("[run]\nmodel = 'dcgan'", 1, "write [[run]], with two brackets"),
    ("run = []", 1, "it names nothing to run"),
    ("steps = 3\n[[run]]\nmodes = ['train']", 2, "it names none of model, models, function, script, module"),
    ("[[run]]\nmodel = 'dcgan'\nscript = 'x.py'", 1, "it names `model` and `script`: one run has one of them"),
    ("[[run]]\n\nmodel = 'dcgan'\nmode = ['train']", 4, "there is no key `mode`; did you mean modes?"),
    ("colour = 1\n[[run]]\nmodel = 'dcgan'", 1, "there is no key `colour`"),
    ("[[run]]\nmodel = 'resnet19'", 2, "There is no model called 'resnet19'. Did you mean resnet18"),
    ("[[run]]\nmodels = [\n'dcgan',\n'nothing']", 4, "no model called 'nothing'"),
    ("[[run]]\nmodels = 'dcgan'", 2, '`models`: a list is wanted, not "dcgan": write ["dcgan"]'),
    ("[[run]]\nmodels = []", 2, "the list is empty"),
    ("[[run]]\nmodels = ['dcgan', 'dcgan']", 2, '"dcgan" is named twice'),
    ("[[run]]\nmodel = 3", 2, "a text is wanted, not 3"),
    ("[[run]]\nmodel = ''", 2, "a text is wanted"),
    ("[[run]]\nmodel = 'dcgan'\nmodes = ['trian']", 3, '"trian" is not known; did you mean train?'),
    ("[[run]]\nmodel = 'dcgan'\ndtypes = ['fp64']", 3, '"fp64" is not known'),
    ("[[run]]\nmodel = 'dcgan'\ndevices = ['gpu']", 3, '"gpu" is no device: auto, cpu, cuda, cuda:1, xpu, mps'),
    ("[[run]]\nmodel = 'dcgan'\nbatches = 0", 3, "a whole number from 1 up is wanted, not 0"),
    ("[[run]]\nmodel = 'dcgan'\nbatches = [1,\n2.5]", 4, "a whole number from 1 up is wanted, not 2.5"),
    ("[[run]]\nmodel = 'dcgan'\nbatches = 'best'", 3, 'numbers or "tune" are wanted'),
    ("[[run]]\nmodel = 'dcgan'\nbatches = { test = 1 }", 3, "'test' is no mode"),
    ("[[run]]\nmodel = 'dcgan'\nbatches = {}", 3, "the table is empty"),
    ("[[run]]\nmodel = 'dcgan'\ncompile = ['fast']", 3, '"fast" is not known'),
    ("[[run]]\nmodel = 'dcgan'\ncompile = false", 3, "a list is wanted, not false: write [false]"),
    ("[[run]]\nmodel = 'dcgan'\nchannels_last = 1", 3, "true or false is wanted, not 1"),
    ("[[run]]\nmodel = 'dcgan'\nsteps = true", 3, "a whole number from 1 up is wanted, not true"),
    ("[[run]]\nmodel = 'dcgan'\nwarmup = -1", 3, "a whole number from 0 up is wanted, not -1"),
    ("[[run]]\nmodel = 'dcgan'\ntimeout_s = 0", 3, "a number above 0 is wanted, not 0"),
    ("[[run]]\nmodel = 'dcgan'\ntimeout_s = inf", 3, "a number above 0 is wanted"),
    ("[[run]]\nmodel = 'dcgan'\nmemory_gb = '4'", 3, 'a number above 0 is wanted, not "4"'),
    ("[[run]]\nmodel = 'dcgan'\nsize = 'huge'", 3, '"huge" is not known; there are real, tiny'),
    ("[[run]]\nmodel = 'dcgan'\narguments = ['x']", 3, "`arguments` has no effect on a model"),
    ("[[run]]\nscript = 'x.py'\nmodes = ['train']", 3, "`modes` has no effect on a script"),
    ("[[run]]\nfunction = 'a:b'\nbatches = 3", 3, "`batches` has no effect on a function"),
    ("[[run]]\nmodule = 'a'\ndtypes = ['bf16']", 3, "`dtypes` has no effect on a module"),
    ("[[run]]\nmodel = 'dcgan'\nsteps = [1, 2]", 3, "a whole number from 1 up is wanted, not a list"),
]


@pytest.mark.parametrize(("text", "line", "words"), MISTAKES)
def test_a_mistake_is_told_with_its_line(tmp_path, text, line, words):
    with pytest.raises(TorchdiagError) as told:
        read(tmp_path, text)
    assert str(told.value).startswith(f"{tmp_path / 'mine.toml'}:{line}: ")
    assert words in str(told.value)


def test_all_mistakes_are_told_at_once_in_order(tmp_path):
    with pytest.raises(TorchdiagError) as told:
        read(tmp_path, "steps = 0\n[[run]]\nmodel = 'dcgan'\nmodes = []\n[[run]]\nmodel = 'none'")
    assert [line.split(":")[1] for line in str(told.value).splitlines()] == ["1", "4", "6"]


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_a_file_that_is_no_text_or_not_there(tmp_path, content):
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TorchdiagError, match="cannot read the suite"):
        suite_file.read(path)


def ids(suite, accelerator="cpu", **overrides):
    return [case.id for case in plan(suite, Overrides(**overrides), accelerator)]


def test_a_run_stands_for_every_combination(tmp_path):
    suite = read(
        tmp_path,
        """
modes = ["eval"]
[[run]]
models = ["dcgan", "RESNET18"]
dtypes = ["fp32", "bf16"]
compile = [false, "max-autotune"]
[[run]]
model = "dcgan"
modes = ["train"]
devices = ["cuda:1"]
batches = [1, 8]
""",
    )
    assert ids(suite) == [
        *(f"{model}-eval-cpu-{dtype}{compiled}"
          for model in ("dcgan", "resnet18")
          for dtype in ("fp32", "bf16")
          for compiled in ("", "-compile_max_autotune")),
        "dcgan-train-cuda1-fp32-b1",
        "dcgan-train-cuda1-fp32-b8",
    ]  # fmt: skip


def test_processes_take_turns_over_the_whole_suite(tmp_path):
    suite = read(tmp_path, "processes = 2\n[[run]]\nmodels = ['dcgan', 'resnet18']\nmodes = ['eval']\n")
    assert ids(suite) == [
        "dcgan-eval-cpu-fp32-p1",
        "resnet18-eval-cpu-fp32-p1",
        "dcgan-eval-cpu-fp32-p2",
        "resnet18-eval-cpu-fp32-p2",
    ]
    assert {case.group for case in plan(suite, Overrides(), "cpu")} == {"dcgan-eval-cpu-fp32", "resnet18-eval-cpu-fp32"}


@pytest.mark.parametrize(
    ("accelerator", "overrides", "size", "batch"),
    [
        ("cpu", {}, "tiny", 3),
        ("cuda", {}, "real", 64),
        ("cuda", {"size": "tiny"}, "tiny", 3),
        ("cpu", {"size": "real"}, "real", 64),
        ("cpu", {"tune": True}, "tiny", "tune"),
    ],
)
def test_named_batches_are_of_the_real_size(tmp_path, accelerator, overrides, size, batch):
    suite = read(tmp_path, "[[run]]\nmodel = 'dcgan'\nmodes = ['train']\nbatches = { train = 64 }\ntiny_batch = 3\n")
    (case,) = plan(suite, Overrides(**overrides), accelerator)
    assert (case.options.size, case.options.batch_size, case.options.device) == (size, batch, accelerator)


def test_only_chooses_by_model_or_run(tmp_path):
    suite = read(tmp_path, "[[run]]\nmodels = ['dcgan', 'resnet18', 'resnet50']\n")
    assert len(ids(suite, only=("RESNET*",))) == 4
    assert ids(suite, only=("dcgan-train-*", "resnet50-eval-cpu-fp32")) == [
        "dcgan-train-cpu-fp32",
        "resnet50-eval-cpu-fp32",
    ]


def test_programs_of_the_users(tmp_path):
    suite = read(
        tmp_path,
        "[[run]]\nscript = 'sub/train.py'\narguments = ['--fast']\ntimeout_s = 7\nmemory_gb = 1.5\n"
        "[[run]]\nfunction = 'pkg.steps:one'\nname = 'first step'\n",
    )
    script, function = plan(suite, Overrides(), "cpu")
    assert (script.id, script.subject, script.domain) == ("train", "train", "user")
    assert script.options.target == str(tmp_path / "sub" / "train.py")
    assert (script.options.script_args, script.options.timeout_s) == (("--fast",), 7.0)
    assert script.memory_bytes == 1_500_000_000
    assert (function.id, function.subject) == ("first_step-cpu-fp32", "first step")


def test_the_same_run_twice_is_a_mistake(tmp_path):
    suite = read(tmp_path, "[[run]]\nmodel = 'dcgan'\n[[run]]\nmodel = 'dcgan'\n")
    with pytest.raises(TorchdiagError, match="names dcgan-train-cpu-fp32 twice"):
        plan(suite, Overrides(), "cpu")


def test_every_shipped_suite_can_be_planned():
    suites = {suite.name: suite for suite in shipped.all_shipped()}
    assert all(suite.description for suite in suites.values())
    for suite in suites.values():
        assert plan(suite, Overrides(), "cuda")
    domains = ("vision", "language", "rl", "speech", "recommendation", "other")
    # The paper's count, by task.
    assert len(suites["torchbench"].models) == 84
    sizes = [sum(name in suites["torchbench"].models for name in suites[domain].models) for domain in domains]
    assert sizes == [47, 17, 3, 3, 2, 12]


def test_every_model_is_in_the_suite_of_its_domain_with_its_batches():
    suites = {suite.name: suite for suite in shipped.all_shipped()}
    for entry in catalogue.MODELS.values():
        suite = suites["rl" if entry.domain == "reinforcement learning" else entry.domain]
        assert entry.name in suite.models
        assert (entry.name in suites["torchbench"].models) != entry.later
        for run in suites["torchbench"].runs:
            if run.targets == (entry.name,):
                assert {mode: sizes[0] for mode, sizes in run.batches.items()} == entry.batch
                assert set(run.modes or entry.modes) == set(entry.modes)
