"""What `torchdiag profile` was pointed at: a model, a script, a module (`-m`) or a function; how the last three run.

Nothing here needs torch; what can be found wrong without running the target is found here.
"""

import difflib
import io
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

from torchdiag.errors import TorchdiagError
from torchdiag.history.profile_options import ProfileOptions, TargetKind
from torchdiag.models import catalogue


def kind_of(target: str, *, module: bool = False) -> TargetKind:
    """What a text on the command line names; `module` is the `-m` flag.

    A file that exists or ends in `.py` is a script, a name with a colon a function, anything else a model.
    """
    if module:
        return "module"
    if target.endswith((".py", ".pyw")) or (target.lower() not in _model_names() and Path(target).is_file()):
        return "script"
    if ":" in target:
        return "function"
    return "model"


def check(options: ProfileOptions) -> None:
    """Find a target's mistakes before a process is started.

    Raises:
        TorchdiagError: no such model, mode, file or module, or a package is missing.
    """
    target = options.target
    match options.target_kind:
        case "model":
            _check_model(options)
        case "script":
            path = Path(target)
            if path.is_dir() and not (path / "__main__.py").is_file():
                raise TorchdiagError(f"{target} is a folder without a __main__.py; name a script.")
            if not path.exists():
                near = [str(other) for other in path.parent.glob("*.py")] if path.parent.is_dir() else []
                close = difflib.get_close_matches(target, near, n=1)
                raise TorchdiagError(f"There is no script {target}." + (f" Did you mean {close[0]}?" if close else ""))
        case "module" | "function":
            name = target.partition(":")[0]
            if not all(part.isidentifier() for part in name.split(".")):
                raise TorchdiagError(f"{name!r} is not the name of a module.")
            if options.target_kind == "function" and not target.partition(":")[2]:
                raise TorchdiagError(f"{target} names no function: write {name}:FUNCTION.")
    if find_spec("torch") is None:
        raise TorchdiagError("torch is not installed here: run `pip install torch`.")


def _model_names() -> set[str]:
    return {name.lower() for name in catalogue.MODELS}


def _check_model(options: ProfileOptions) -> None:
    try:
        entry = catalogue.find(options.target)
    except TorchdiagError as error:
        if Path(options.target).with_suffix(".py").is_file():
            raise TorchdiagError(f"{error} There is a script {options.target}.py: name it with `.py`.") from None
        raise
    entry.default_batch(options.mode, "real")
    if missing := entry.missing_packages():
        raise TorchdiagError(f"{entry.name} needs {', '.join(missing)}: run `pip install {' '.join(missing)}`.")


def function(target: str) -> Callable[[], object]:
    """The function that `pkg.module:name` names, importable from the current folder as well.

    Raises:
        TorchdiagError: there is no such module or function in it. What the module itself raises is let through.
    """
    name, _, attributes = target.partition(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    _require(name)
    found: Any = import_module(name)
    for attribute in attributes.split("."):
        if not hasattr(found, attribute):
            near = difflib.get_close_matches(attribute, dir(found), n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise TorchdiagError(f"{name} has no {attribute!r}.{hint}")
        found = getattr(found, attribute)
    if not callable(found):
        raise TorchdiagError(
            f"{target} is no function but a {type(found).__name__}; it must be callable without arguments."
        )
    return cast("Callable[[], object]", found)


def program(options: ProfileOptions) -> Callable[[], None]:
    """The script or module as a function that runs it as `python` would: as `__main__`, with its arguments and path.

    Raises:
        TorchdiagError: it cannot be read or there is no such module. A SyntaxError is the script's own and let through
        when the function is called.
    """
    if options.target_kind == "module":
        return _module(options)
    path = Path(options.target)
    if path.is_dir():
        path /= "__main__.py"
    try:
        with io.open_code(str(path.resolve())) as file:
            source = file.read()
    except OSError as error:
        raise TorchdiagError(f"cannot read {path}: {error.strerror or error}") from error

    def run() -> None:
        sys.argv[:] = [options.target, *options.script_args]
        sys.path.insert(0, str(path.resolve().parent))
        main = ModuleType("__main__")
        main.__file__ = str(path)
        # The absolute path, so that the trace's frames can be found again from anywhere.
        _execute(compile(source, str(path.resolve()), "exec"), main)

    return run


def _module(options: ProfileOptions) -> Callable[[], None]:
    sys.path.insert(0, str(Path.cwd()))
    name = options.target
    _require(name)
    spec = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name = f"{name}.__main__"
        spec = find_spec(name)
        if spec is None:
            raise TorchdiagError(f"{options.target} is a package without a __main__, so `-m` cannot run it.")
    loader: Any = spec.loader if spec is not None else None
    if spec is None or not hasattr(loader, "get_code"):
        raise TorchdiagError(f"{name} cannot be run with `-m`.")

    def run() -> None:
        code: CodeType | None = loader.get_code(name)
        if code is None:
            raise ImportError(f"no code object for {name}")
        main = ModuleType("__main__")
        main.__file__ = spec.origin
        main.__spec__ = spec
        main.__package__ = spec.parent
        main.__loader__ = loader
        sys.argv[:] = [spec.origin or options.target, *options.script_args]
        _execute(code, main)

    return run


def _require(name: str) -> None:
    try:
        spec = find_spec(name)
    except ModuleNotFoundError as error:
        raise TorchdiagError(f"There is no module {error.name} (for {name}) here.") from error
    if spec is None:
        raise TorchdiagError(f"There is no module {name} here; the current folder is {Path.cwd()}.")


def _execute(code: CodeType, main: ModuleType) -> None:
    # Its own module, and for good: classes of the script are pickled by the name __main__, also while it ends.
    sys.modules["__main__"] = main
    exec(code, main.__dict__)
