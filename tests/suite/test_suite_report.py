"""The report of a suite's run, in each form, from outcomes written by hand."""

import csv
import io
import json
import subprocess
import sys

import pytest
import suite_outcomes as made
from rich.console import Console
from suite_outcomes import case, figures, outcome

from torchdiag.report.terminal import canvas
from torchdiag.suite import findings, pairs, report_page, shares
from torchdiag.suite.outcome import Found
from torchdiag.suite.page_markdown import to_markdown
from torchdiag.suite.page_terminal import print_page
from torchdiag.suite.report_csv import to_csv
from torchdiag.suite.report_json import dumps
from torchdiag.suite.rows import COLUMNS, row


def gpu(subject, mode="train", parts=(60, 10, 20, 10), steps=(10, 10, 10), found=(), **more):
    options = {name: more.pop(name) for name in ("device", "compile", "dtype") if name in more}
    process = more.pop("process", 1)
    return outcome(
        case(subject, mode, process, **options), figures=figures(steps, parts, **more), findings=tuple(found)
    )


def hit(rule, verdict="exposed", gain=0.0):
    return Found(rule=rule, verdict=verdict, gain_share=gain)


RUNS = [
    gpu("resnet18", parts=(50, 10, 20, 20), found=[hit("sync-in-step", gain=0.5), hit("sync-in-step", gain=0.25)]),
    gpu("resnet18", "eval", parts=(90, 0, 5, 5), steps=(4, 4, 4)),
    gpu("resnet50", parts=(70, 10, 10, 10), steps=(30, 30, 30), found=[hit("sync-in-step", gain=0.0)]),
    gpu("hf_Bert", parts=(80, 0, 10, 10), found=[hit("sync-in-step", "latent"), hit("small-copies", "cannot-tell")]),
    gpu("hf_Bert", parts=(90, 0, 5, 5), steps=(5, 5, 5), compile="default"),
    gpu("soft_actor_critic", parts=(10, 0, 60, 30), steps_ns=1000, environment_ns=250),
    gpu("resnet18", device="cpu", parts=(700, 0, 200, 0, 100), steps=(100, 100, 100)),
    outcome(
        case("vgg16"), status="skipped", kind="package", message="vgg16 needs x: run `pip install x`.", figures=None
    ),
    outcome(
        case("yolov3"), status="failed", kind="out-of-memory", message="Out of [bold]memory\x1b[31m|", figures=None
    ),
]


@pytest.fixture
def folder(tmp_path):
    return made.folder(tmp_path / "run", RUNS)


def test_a_domain_is_the_mean_over_its_models():
    found = {(one.domain, one.mode, one.device): one for one in shares.domains(shares.measured(RUNS))}
    vision = found["vision", "train", "cuda"]
    assert vision.models == 2
    # resnet18 (50, 10, 20, 20) and resnet50 (70, 10, 10, 10), each once, though one has steps thrice as long.
    assert vision.parts == pytest.approx({"active": 0.6, "transfer": 0.1, "python": 0.15, "idle": 0.15})
    assert vision.paper_active == 0.53
    # The eager run alone stands for hf_Bert.
    assert found["language", "train", "cuda"].parts["active"] == pytest.approx(0.8)
    assert found["", "train", "cuda"].models == 4
    assert found["", "train", "cuda"].parts["active"] == pytest.approx((0.5 + 0.7 + 0.8 + 0.1) / 4)
    assert found["reinforcement learning", "train", "cuda"].environment == 0.25
    assert found["vision", "train", "cpu"].parts["operator"] == 0.7
    assert found["vision", "train", "cpu"].paper_active is None


def test_processes_of_one_setting_are_one_model():
    (one,) = shares.measured(
        [
            gpu("dlrm", parts=(50, 0, 0, 50), steps=(1, 2, 3)),
            gpu("dlrm", parts=(150, 0, 0, 50), steps=(7, 8, 9), process=2),
        ]
    )
    assert (one.processes, one.step_ns) == (2, 5_000_000)
    # Of all recorded time together: 200 of 300 (but each window counts as long as it is).
    assert one.parts["active"] == pytest.approx(200 / 300)
    assert one.busy == pytest.approx(200 / 300)


def test_what_differs_in_one_thing_is_paired():
    models = shares.measured(RUNS)
    (pair,) = pairs.train_and_eval(models)
    assert (pair.first.case.subject, pair.first.case.mode, pair.ratio) == ("resnet18", "train", 0.4)
    ((mode, (pair,)),) = pairs.eager_and_compiled(models).items()
    assert (mode, pair.first.case.options.compile, pair.ratio) == ("default", None, 0.5)
    ((names, (pair,)),) = pairs.devices(models).items()
    assert (names, pair.first.case.options.device, pair.ratio) == (("cuda", "cpu"), "cuda", 10.0)
    assert pairs.geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert pairs.geometric_mean([]) is None


def test_findings_over_the_suite():
    (rule,) = findings.top(RUNS)
    assert (rule.rule, rule.models, rule.latent) == (
        "sync-in-step",
        ("resnet18 train", "resnet50 train"),
        ("hf_Bert train",),
    )
    # What is left of the steps: 1 - 0.75 and 1, in the geometric mean 0.5.
    assert rule.gain == pytest.approx(0.5)
    assert rule.largest == 0.75


def shown(page, width=100):
    stream = io.StringIO()
    drawn = canvas(stream, width)
    assert isinstance(drawn.console, Console)
    print_page(page, drawn)
    return stream.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_terminal(folder, width):
    text = shown(report_page.page(folder, RUNS), width)
    assert text.startswith("mine: 7 of 9 runs complete, 1 failed, 1 skipped")
    assert "60.0 %" in text
    assert "sync-in-step" in text
    assert "\x1b" not in text
    if width >= 80:
        assert all(len(line) <= width for line in text.splitlines())


def test_markdown_has_every_table_and_no_markup_of_a_runs(folder):
    text = to_markdown(report_page.page(folder, RUNS))
    for title in (
        "by domain, on cuda",
        "by domain, on cpu",
        "By model",
        "Training against inference",
        "cuda against cpu",
    ):
        assert title in text
    assert "| vision | train | 2 | 60.0 % | 10.0 % | 15.0 % | 15.0 % | 70.0 % | 53 % |  |" in text
    assert "Out of \\[bold\\]memory\\\\x1b\\[31m\\|" in text


def test_csv_and_json_hold_every_run(folder):
    rows = list(csv.DictReader(io.StringIO(to_csv(RUNS))))
    assert list(rows[0]) == list(COLUMNS)
    assert [row["status"] for row in rows[-2:]] == ["skipped", "failed"]
    assert (rows[0]["step_ns"], rows[0]["active_ns"], rows[0]["kernels_per_step"]) == ("10000000", "50", "10.0")
    assert rows[6]["host_operator_ns"] == "700"
    document = json.loads(dumps(folder, RUNS))
    assert len(document["runs"]) == 9
    assert document["eager_and_compiled"]["default"][0]["ratio"] == 0.5
    assert document["findings"][0]["gain"] == pytest.approx(0.5)
    assert {one["domain"] for one in document["domains"]} == {"vision", "language", "reinforcement learning", ""}


def command(*arguments, code="pass"):
    start = f"import sys; {code}; sys.argv[0] = 'torchdiag'; from torchdiag.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start, "suite", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_html_without_its_packages_is_one_message(folder, tmp_path):
    hide = "sys.modules['plotly'] = None; sys.modules['plotly.graph_objects'] = None"
    code, _, errors = command("report", folder.path, "--html", tmp_path / "page.html", code=hide)
    assert code == 2
    assert "run `pip install 'torchdiag[report]'`" in errors
    assert errors.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_html_is_one_file_with_plots(folder, tmp_path):
    pytest.importorskip("plotly")
    pytest.importorskip("jinja2")
    code, _, errors = command("report", folder.path, "--html", tmp_path / "page.html")
    assert code == 0, errors
    text = (tmp_path / "page.html").read_text()
    assert text.count('<div class="plot">') == 7
    assert "Out of [bold]memory\\x1b[31m|" in text
    assert 'src="http' not in text
    code, _, errors = command("report", folder.path, "--html", tmp_path / "page.html")
    assert code == 2 and "--force" in errors


def test_commands_that_read_start_without_torch_and_say_what_is_wrong(folder, tmp_path):
    code, text, _ = command("coverage", folder.path, "--json")
    assert code == 0
    assert json.loads(text)["all"]["operators"] == ["aten::mm"]
    code, text, _ = command("compare", folder.path, folder.path, "--json", "--fail-on", "regression")
    assert code == 0
    assert {change["verdict"] for change in json.loads(text)["changes"]} == {"cannot tell", "not comparable"}
    for arguments, words in (
        (["report", tmp_path], "is not the folder of a suite's run: it has no suite.json"),
        (["report", tmp_path / "none"], "No such file"),
        (["report", folder.path, "--csv", "--json"], "--csv and --json are different forms"),
        (["compare", folder.path, tmp_path], "it has no suite.json"),
    ):
        code, text, errors = command(*arguments)
        assert (code, text) == (2, "")
        assert words in errors
    code, _, errors = command("report", folder.path, code="sys.modules['torch'] = None")
    assert code == 0, errors


def test_a_gate_ends_with_1(tmp_path):
    before = made.folder(tmp_path / "a", [gpu("dlrm")])
    after = made.folder(tmp_path / "b", [outcome(case("dlrm"), status="failed", message="It raised.", figures=None)])
    assert command("compare", before.path, after.path)[0] == 0
    code, text, _ = command("compare", before.path, after.path, "--fail-on", "regression")
    assert code == 1
    assert "broke" in text


def test_what_there_is_to_know_about_models_is_said_once():
    noted = [gpu(subject, mode, model_note="rebuilt") for subject in ("a", "b") for mode in ("train", "eval")]
    assert "a, b: rebuilt." in report_page._notes(noted)
    assert [row(one)["model_note"] for one in (noted[0], RUNS[0])] == ["rebuilt", None]
