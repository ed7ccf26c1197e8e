"""A suite file: what is to be run, how, in how many processes. docs/suites.md describes the format.

A run of the file stands for several runs: each of its models in each mode, on each device, in each precision, eager and
compiled, at each batch size. Whatever a run may say, the top of the file may say for all of them.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from torchdiag.errors import TorchdiagError
from torchdiag.history.profile_options import Dtype, TargetKind
from torchdiag.models import catalogue
from torchdiag.models.workload import Mode, Size
from torchdiag.suite import toml_values as values
from torchdiag.suite.toml_lines import Key, lines
from torchdiag.suite.toml_values import BatchChoice, Reading, WrongValueError

DEFAULT_TIMEOUT_S: Final = 900.0
"""Seconds a run may take unless the suite says otherwise."""

_MOST_MISTAKES: Final = 8
_TARGETS: Final[dict[str, TargetKind]] = {
    "model": "model",
    "models": "model",
    "function": "function",
    "script": "script",
    "module": "module",
}
_ANYWHERE: Final[dict[str, Reading]] = {
    "modes": values.one_of_each("train", "eval"),
    "devices": values.devices,
    "dtypes": values.one_of_each("fp32", "tf32", "bf16", "fp16", "amp"),
    "batches": values.batches,
    "tiny_batch": values.whole(1),
    "size": values.one_of("real", "tiny"),
    "compile": values.compile_modes,
    "channels_last": values.flag,
    "steps": values.whole(1),
    "warmup": values.whole(0),
    "seed": values.whole(0),
    "processes": values.whole(1),
    "timeout_s": values.positive,
    "memory_gb": values.positive,
}
_OF_A_RUN: Final[dict[str, Reading]] = {
    "model": values.text,
    "models": values.texts,
    "function": values.text,
    "script": values.text,
    "module": values.text,
    "arguments": values.texts,
    "name": values.text,
    "domain": values.text,
}
_MODELS_ONLY: Final = ("modes", "batches", "tiny_batch", "size", "compile", "channels_last")
_PROGRAMS_DECIDE: Final = (*_MODELS_ONLY, "devices", "dtypes", "seed")


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run of the file, with what the top of the file says filled in.

    `batches` is by mode; a mode that is missing takes the model's own. They are those of the real size; the tiny one
    takes `tiny_batch`, or the model's own. An empty `modes` means all that a model has, an empty `size` what suits the
    device. `memory_bytes` is None where the file sets no limit.
    """

    line: int
    kind: TargetKind
    targets: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    name: str = ""
    domain: str = ""
    modes: tuple[Mode, ...] = ()
    devices: tuple[str, ...] = ("auto",)
    dtypes: tuple[Dtype, ...] = ("fp32",)
    batches: dict[Mode, BatchChoice] = field(default_factory=dict[Mode, BatchChoice])
    tiny_batch: int | None = None
    size: Size | None = None
    compile: tuple[str | None, ...] = (None,)
    channels_last: bool = False
    steps: int | None = None
    warmup: int | None = None
    seed: int = 0
    processes: int = 1
    timeout_s: float = DEFAULT_TIMEOUT_S
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite file that was read."""

    name: str
    path: Path
    description: str
    runs: tuple[RunEntry, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """The models it names, each once, in order."""
        return tuple(dict.fromkeys(name for run in self.runs if run.kind == "model" for name in run.targets))


class _Mistakes:
    """What is wrong with a file, told all at once."""

    def __init__(self, path: Path, found: dict[Key, int]) -> None:
        self._path = path
        self.folder = path.parent
        self._lines = found
        self._told: list[tuple[int, str]] = []

    def line(self, key: Key) -> int:
        while key and key not in self._lines:
            key = key[:-1]
        return self._lines.get(key, 1)

    def add(self, key: Key, message: str) -> None:
        self._told.append((self.line(key), message))

    def tell(self) -> None:
        if not self._told:
            return
        told = sorted(self._told)
        shown = [f"{self._path}:{line}: {message}" for line, message in told[:_MOST_MISTAKES]]
        if len(told) > _MOST_MISTAKES:
            shown.append(f"and {len(told) - _MOST_MISTAKES} more")
        raise TorchdiagError("\n".join(shown))


def read(path: Path, *, any_model: bool = False) -> Suite:
    """Read a suite file. With `any_model`, models that this torchdiag does not have are let through.

    Raises:
        TorchdiagError: it cannot be read, or something in it cannot be meant; each mistake with its line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TorchdiagError(f"cannot read the suite {path}: {reason}") from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TorchdiagError(_no_toml(path, text, str(error))) from error
    # Lines end as tomllib sees them.
    mistakes = _Mistakes(path, lines(text.replace("\r\n", "\n")))
    suite = _suite(path, document, mistakes, any_model=any_model)
    mistakes.tell()
    return suite


def _no_toml(path: Path, text: str, message: str) -> str:
    what, found, place = message.rpartition(" (at line ")
    if found:
        line = place.partition(",")[0]
    else:
        what, line = message.removesuffix(" (at end of document)"), str(len(text.splitlines()) or 1)
    return f"{path}:{line}: this is no TOML: {what}"


def _suite(path: Path, document: dict[str, Any], mistakes: _Mistakes, *, any_model: bool) -> Suite:
    description = ""
    top: dict[str, Any] = {}
    for key, value in document.items():
        if key == "description":
            description = _checked((key,), value, values.text, mistakes) or ""
        elif key in _ANYWHERE:
            top[key] = _checked((key,), value, _ANYWHERE[key], mistakes)
        elif key != "run":
            _unknown((key,), ("description", "run", *_ANYWHERE), mistakes)
    found = document.get("run")
    if found is None:
        mistakes.add((), "it names nothing to run: add a [[run]] with models = [...]")
    elif not isinstance(found, list) or not all(isinstance(item, dict) for item in cast("list[object]", found)):
        mistakes.add(("run",), "`run` is a list of tables: write [[run]], with two brackets")
    elif not found:
        mistakes.add(("run",), "`run` is empty: it names nothing to run")
    else:
        tables = cast("list[dict[str, Any]]", found)
        entries = [_entry(number, table, top, mistakes, any_model) for number, table in enumerate(tables)]
        runs = tuple(entry for entry in entries if entry is not None)
        return Suite(path.stem, path, description, runs)
    return Suite(path.stem, path, description, ())


def _entry(
    number: int, table: dict[str, Any], top: dict[str, Any], mistakes: _Mistakes, any_model: bool
) -> RunEntry | None:
    at: Key = ("run", number)
    said: dict[str, Any] = {}
    for key, value in table.items():
        reading = _OF_A_RUN.get(key) or _ANYWHERE.get(key)
        if reading is None:
            _unknown((*at, key), (*_OF_A_RUN, *_ANYWHERE), mistakes)
        else:
            said[key] = _checked((*at, key), value, reading, mistakes)
    named = [key for key in _TARGETS if key in table]
    if len(named) != 1:
        those = " and ".join(f"`{key}`" for key in named)
        message = f"it names {those}: one run has one of them" if named else f"it names none of {', '.join(_TARGETS)}"
        mistakes.add(at, message)
        return None
    key = named[0]
    kind = _TARGETS[key]
    targets = said[key] if key == "models" else (said[key],)
    if targets is None or None in targets:
        return None
    if kind == "model":
        targets = _models(targets, (*at, key), mistakes, any_model)
        useless = ("arguments", "name", "domain")
    else:
        if kind == "script":
            # As a person reads it: from where the suite file is.
            targets = (str(mistakes.folder / targets[0]),)
        useless = _MODELS_ONLY if kind == "function" else _PROGRAMS_DECIDE
        useless += ("arguments",) if kind == "function" else ("warmup",)
    for useless_key in useless:
        if useless_key in said:
            mistakes.add((*at, useless_key), f"`{useless_key}` has no effect on a {kind}")
    merged = {name: value for name, value in (top | said).items() if value is not None and name not in useless}
    if kind == "model":
        _check_modes(targets, said.get("modes"), (*at, "modes"), mistakes)
    return _filled(mistakes.line(at), kind, tuple(targets), merged)


def _filled(line: int, kind: TargetKind, targets: tuple[str, ...], merged: dict[str, Any]) -> RunEntry:
    memory_gb = merged.pop("memory_gb", None)
    for key in _TARGETS:
        merged.pop(key, None)
    return RunEntry(
        line=line,
        kind=kind,
        targets=targets,
        memory_bytes=None if memory_gb is None else round(memory_gb * 1e9),
        **merged,
    )


def _models(targets: tuple[str, ...], at: Key, mistakes: _Mistakes, any_model: bool) -> tuple[str, ...]:
    names: list[str] = []
    for number, name in enumerate(targets):
        try:
            names.append(catalogue.find(name).name)
        except TorchdiagError as error:
            if any_model:
                names.append(name)
            else:
                mistakes.add((*at, number), str(error))
    return tuple(names)


def _check_modes(targets: tuple[str, ...], modes: tuple[Mode, ...] | None, at: Key, mistakes: _Mistakes) -> None:
    for name in targets:
        entry = catalogue.MODELS.get(name)
        if entry is not None and modes and not set(modes) & set(entry.modes):
            mistakes.add(at, f"{name} has no {' and no '.join(modes)} mode; it has {' and '.join(entry.modes)}")


def _checked(key: Key, value: object, reading: Reading, mistakes: _Mistakes) -> Any:
    """The value as it is meant; None where it cannot be, which is then told."""
    try:
        return reading(value)
    except WrongValueError as error:
        mistakes.add((*key, *error.inside), f"`{key[-1]}`: {error}")
        return None


def _unknown(key: Key, known: tuple[str, ...], mistakes: _Mistakes) -> None:
    name = str(key[-1])
    mistakes.add(key, f"there is no key `{name}`{values.did_you_mean(name, known)}")
