"""What a command line names, what is wrong with it, and how scripts and modules are run."""

import importlib.util
import sys

import pytest

from torchdiag.capture import targets
from torchdiag.capture.after_import import after_import
from torchdiag.capture.targets import check, kind_of
from torchdiag.errors import TorchdiagError
from torchdiag.history.profile_options import ProfileOptions

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def options(target, kind, **more):
    return ProfileOptions(target=str(target), target_kind=kind, **more)


@pytest.fixture
def undone(monkeypatch, tmp_path):
    """Whatever running a program changes in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    return tmp_path


@pytest.mark.parametrize(
    ("text", "module", "kind"),
    [
        ("yolov3", False, "model"),
        ("train.py", False, "script"),
        ("folder/train.py", False, "script"),
        ("pkg.train", True, "module"),
        ("pkg.train:step", False, "function"),
        ("no such thing", False, "model"),
    ],
)
def test_the_form_of_a_target_says_what_it_is(text, module, kind):
    assert kind_of(text, module=module) == kind


def test_a_file_without_an_ending_is_a_script_unless_a_model_is_called_so(undone):
    (undone / "launcher").write_text("")
    (undone / "yolov3").write_text("")
    assert kind_of("launcher") == "script"
    assert kind_of("yolov3") == "model"


@pytest.mark.parametrize(
    ("target", "kind", "words"),
    [
        ("yolov33", "model", "Did you mean yolov3?"),
        ("trian.py", "script", "Did you mean train.py?"),
        ("a b", "module", "'a b' is not the name of a module"),
        ("pkg:", "function", "names no function: write pkg:FUNCTION"),
        (".", "script", "a folder without a __main__.py"),
    ],
)
def test_a_mistake_is_named_before_anything_runs(undone, target, kind, words):
    (undone / "train.py").write_text("")
    with pytest.raises(TorchdiagError, match=words.replace("?", r"\?")):
        check(options(target, kind))


def test_a_model_and_a_script_of_its_name_are_told_apart(undone):
    (undone / "mynet.py").write_text("")
    with pytest.raises(TorchdiagError, match=r"There is a script mynet\.py: name it with `\.py`"):
        check(options("mynet", "model"))


def test_a_script_runs_as_python_would_run_it(undone):
    folder = undone / "somewhere"
    folder.mkdir()
    (folder / "beside.py").write_text("value = 5\n")
    script = folder / "script.py"
    script.write_text(
        "import sys, pickle, beside\n"
        "class Thing: pass\n"
        "seen = (__name__, sys.argv[1:], beside.value, sys.path[0], __file__)\n"
        "again = type(pickle.loads(pickle.dumps(Thing()))) is Thing\n"
    )
    targets.program(options("somewhere/script.py", "script", script_args=("--epochs", "1")))()
    main = sys.modules["__main__"]
    assert main.seen == ("__main__", ["--epochs", "1"], 5, str(folder), "somewhere/script.py")
    assert main.again
    assert sys.argv[0] == "somewhere/script.py"
    sys.modules.pop("beside")


def test_a_package_runs_by_its_main_module(undone):
    package = undone / "some_package_here"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("value = 6\n")
    (package / "__main__.py").write_text(
        "import sys\nfrom .part import value\nseen = (__name__, value, sys.argv[1:])\n"
    )
    targets.program(options("some_package_here", "module", script_args=("x",)))()
    assert sys.modules["__main__"].seen == ("__main__", 6, ["x"])


def test_a_module_that_is_not_there_is_a_mistake(undone):
    with pytest.raises(TorchdiagError, match="There is no module nowhere_at_all"):
        targets.program(options("nowhere_at_all", "module"))
    with pytest.raises(TorchdiagError, match="There is no module nowhere_at_all"):
        targets.program(options("nowhere_at_all.sub", "module"))


def test_a_function_is_found_in_the_current_folder(undone):
    (undone / "some_steps_here.py").write_text(
        "class Trainer:\n    @staticmethod\n    def step(): return 3\nnumber = 4\n"
    )
    assert targets.function("some_steps_here:Trainer.step")() == 3
    with pytest.raises(TorchdiagError, match=r"has no 'Trainr'\. Did you mean Trainer\?"):
        targets.function("some_steps_here:Trainr.step")
    with pytest.raises(TorchdiagError, match="is no function but a int"):
        targets.function("some_steps_here:number")


def test_a_call_comes_right_after_an_import_and_leaves_no_trace(undone):
    (undone / "imported_later.py").write_text("import sys\nloader = type(__loader__).__name__\nvalue = 1\n")
    sys.path.insert(0, str(undone))
    seen = []
    after_import("imported_later", lambda: seen.append(sys.modules["imported_later"].value))
    assert seen == []
    module = importlib.import_module("imported_later")
    assert seen == [1]
    assert module.loader == type(module.__spec__.loader).__name__ == "SourceFileLoader"
    after_import("imported_later", lambda: seen.append(2))
    assert seen == [1, 2]
    assert not [finder for finder in sys.meta_path if "after_import" in type(finder).__module__]


@needs_torch
def test_everything_in_order_is_no_mistake(undone):
    (undone / "train.py").write_text("")
    check(options("train.py", "script"))
    check(options("soft_actor_critic", "model"))
    check(options("os.path:join", "function"))
