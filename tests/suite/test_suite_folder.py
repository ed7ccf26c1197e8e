"""The folder of a suite's run: made anew, found again, read back."""

import pytest
import suite_outcomes as made
from suite_outcomes import case, outcome

from torchdiag.errors import TorchdiagError
from torchdiag.suite import folder as folders
from torchdiag.suite import outcome as outcomes
from torchdiag.suite.tuning import to_toml


def test_what_is_written_is_read(tmp_path):
    runs = [outcome(), outcome(case("dlrm"), status="failed", kind="killed", message="Killed.", figures=None)]
    folder = made.folder(tmp_path / "run", runs)
    assert folders.read(tmp_path / "run").plan == folder.plan
    assert folders.read(tmp_path / "run").outcomes() == runs


def test_a_run_that_was_cut_short_is_not_there_and_a_damaged_one_is_told(tmp_path):
    folder = made.folder(tmp_path / "run", [outcome()])
    file = folder.of(case()) / outcomes.OUTCOME
    content = file.read_bytes()
    file.unlink()
    assert folders.read(tmp_path / "run").outcomes() == []
    file.write_bytes(content[:100])
    with pytest.raises(TorchdiagError, match="is not the outcome of a run"):
        folders.read(tmp_path / "run").outcomes()
    file.write_bytes(content.replace(b'"schema":1', b'"schema":9', 1))
    with pytest.raises(TorchdiagError, match="newer torchdiag"):
        folders.read(tmp_path / "run").outcomes()


def test_nothing_is_overwritten(tmp_path):
    made.folder(tmp_path / "run", [outcome()])
    with pytest.raises(TorchdiagError, match="go on with --resume"):
        made.folder(tmp_path / "run", [outcome()])


def test_the_latest_of_a_suite_is_not_that_of_another_with_a_longer_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("suite-mine-20260101-000000", "suite-mine-20260102-000000", "suite-mine-too-20260103-000000"):
        made.folder(tmp_path / "torchdiag-runs" / name, [outcome()])
    assert folders.latest("mine").name == "suite-mine-20260102-000000"
    with pytest.raises(TorchdiagError, match="there is no run of the suite other"):
        folders.latest("other")


def test_tuned_batch_sizes_are_a_suite(tmp_path):
    from torchdiag.suite import suite_file  # noqa: PLC0415 - beside its only use
    from torchdiag.suite.cases import Overrides, plan  # noqa: PLC0415

    runs = [
        outcome(case("resnet18"), tuned_batch=64),
        outcome(case("resnet18", "eval", device="cpu", size="tiny"), tuned_batch=8),
        outcome(case("dcgan", compile="default", dtype="bf16"), tuned_batch=16),
        outcome(case("dlrm"), status="failed", figures=None),
    ]
    (tmp_path / "tuned.toml").write_text(to_toml('of "mine"', runs))
    suite = suite_file.read(tmp_path / "tuned.toml")
    assert suite.description == 'of "mine"'
    found = [(one.id, one.options.batch_size, one.options.size) for one in plan(suite, Overrides(), "cuda")]
    assert found == [
        ("resnet18-train-cuda-fp32", 64, "real"),
        ("resnet18-eval-cpu-fp32", 8, "tiny"),
        ("dcgan-train-cuda-bf16-compile_default", 16, "real"),
    ]
    assert to_toml("", runs[3:]) == ""
