"""The single runs that a suite stands for, each with a name that is the same whenever the suite is read."""

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final, Literal

import msgspec

from torchdiag.errors import TorchdiagError
from torchdiag.history.profile_options import Dtype, ProfileOptions
from torchdiag.models import catalogue
from torchdiag.models.workload import Mode, Size
from torchdiag.suite import toml_values
from torchdiag.suite.suite_file import RunEntry, Suite
from torchdiag.suite.toml_values import WrongValueError

_UNFIT: Final = re.compile(r"[^A-Za-z0-9._]+")
_USERS: Final = "user"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a suite: one target, once, in a process of its own.

    `id` names its folder; runs of the same in several processes share the `group`, and `process` counts them from 1.
    `subject` is the model, or what the suite calls a program of the user's; `domain` is empty for a model that this
    torchdiag does not have. `memory_bytes` limits its resident memory, None where the suite sets no limit.
    """

    id: str
    group: str
    subject: str
    domain: str
    task: str
    options: ProfileOptions
    process: int = 1
    memory_bytes: int | None = None

    @property
    def mode(self) -> str:
        """`train` or `eval` of a model, empty for a program."""
        return self.options.mode if self.options.target_kind == "model" else ""


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says in place of the suite; None and empty leave it as it is."""

    only: tuple[str, ...] = ()
    size: Size | None = None
    devices: tuple[str, ...] = ()
    modes: tuple[Mode, ...] = ()
    steps: int | None = None
    processes: int | None = None
    timeout_s: float | None = None
    tune: bool = False


def plan(suite: Suite, overrides: Overrides, accelerator: str) -> list[Case]:
    """All runs of a suite, in order: each target's first process, then each one's second, and so on.

    So whatever drifts over the hours falls on all alike. `accelerator` is what the device `auto` means here.

    Raises:
        TorchdiagError: nothing is left to run, two runs are the same, or a device in `overrides` cannot be meant.
    """
    try:
        toml_values.devices(list(overrides.devices or ["auto"]))
    except WrongValueError as error:
        raise TorchdiagError(f"--device: {error}") from error
    cases = [case for run in suite.runs for case in _cases(run, overrides, accelerator)]
    cases = choose(cases, overrides.only, suite.name)
    if not cases:
        raise TorchdiagError(f"nothing of the suite {suite.name} is left to run: its models have no such mode")
    _refuse_twins(suite, cases)
    return sorted(cases, key=lambda case: case.process)


def choose(cases: Sequence[Case], only: Sequence[str], suite: str) -> list[Case]:
    """The cases whose model or name fits one of the patterns (`*` and `?` fit anything); all where there is none.

    Raises:
        TorchdiagError: none fits.
    """
    if not only:
        return list(cases)
    chosen = [case for case in cases if any(_meant(case, pattern) for pattern in only)]
    if not chosen:
        names = ", ".join(dict.fromkeys(case.subject for case in cases))
        raise TorchdiagError(f"--only {', '.join(only)} leaves nothing of the suite {suite}: it has {names}")
    return chosen


def _meant(case: Case, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for name in (case.subject, case.id))


def _refuse_twins(suite: Suite, cases: Sequence[Case]) -> None:
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise TorchdiagError(
                f"the suite {suite.path} names {case.id} twice; to measure it in several processes, set `processes`"
            )
        seen.add(case.id)


def _cases(run: RunEntry, overrides: Overrides, accelerator: str) -> Iterator[Case]:
    devices = tuple(accelerator if device == "auto" else device for device in overrides.devices or run.devices)
    devices = tuple(dict.fromkeys(devices))
    for target in run.targets:
        if run.kind == "model":
            yield from _of_model(run, target, devices, overrides)
        elif not overrides.tune:
            yield from _of_program(run, target, devices, overrides)


def _of_model(run: RunEntry, target: str, devices: Sequence[str], overrides: Overrides) -> Iterator[Case]:
    entry = catalogue.MODELS.get(target)
    modes: Sequence[Mode] = run.modes or (entry.modes if entry is not None else ("train", "eval"))
    modes = [mode for mode in modes if entry is None or mode in entry.modes]
    modes = [mode for mode in modes if not overrides.modes or mode in overrides.modes]
    for mode, device, dtype, compiled in product(modes, devices, run.dtypes, run.compile):
        size: Size = overrides.size or run.size or ("tiny" if device == "cpu" else "real")
        parts = [target, mode, device, dtype, *([] if compiled is None else [f"compile-{compiled}"])]
        parts += ["channels-last"] if run.channels_last else []
        sizes = _batches(run, mode, size, tune=overrides.tune)
        for batch in sizes:
            options = msgspec.structs.replace(
                _options(run, overrides, target, device, dtype),
                mode=mode,
                size=size,
                compile=compiled,
                channels_last=run.channels_last,
                batch_size=batch,
            )
            named = [*parts, f"b{batch}"] if len(sizes) > 1 else parts
            yield from _processes(run, overrides, named, _case(run, target, options))


def _batches(run: RunEntry, mode: Mode, size: Size, *, tune: bool) -> tuple[int | Literal["tune"] | None, ...]:
    """The batch sizes of a mode, None for the model's own; those that the suite names are of the real size."""
    choice = run.batches.get(mode)
    if tune or choice == "tune":
        return ("tune",)
    if size == "tiny":
        return (run.tiny_batch,)
    return choice or (None,)


def _of_program(run: RunEntry, target: str, devices: Sequence[str], overrides: Overrides) -> Iterator[Case]:
    name = run.name or (Path(target).stem if run.kind == "script" else target)
    decides = run.kind in ("script", "module")
    dtypes: tuple[Dtype, ...] = ("fp32",) if decides else run.dtypes
    for device, dtype in product(("auto",) if decides else devices, dtypes):
        options = _options(run, overrides, target, device, dtype)
        case = msgspec.structs.replace(_case(run, target, options), subject=name)
        yield from _processes(run, overrides, [name] if decides else [name, device, dtype], case)


def _case(run: RunEntry, target: str, options: ProfileOptions) -> Case:
    entry = catalogue.MODELS.get(target) if run.kind == "model" else None
    return Case(
        id="",
        group="",
        subject=target,
        domain=entry.domain if entry is not None else run.domain or ("" if run.kind == "model" else _USERS),
        task=entry.task if entry is not None else "",
        options=options,
        memory_bytes=run.memory_bytes,
    )


def refreshed(case: Case) -> Case:
    """The case of a plan made earlier, whose model may have come with a newer torchdiag since."""
    entry = catalogue.MODELS.get(case.options.target)
    if case.domain or case.options.target_kind != "model" or entry is None:
        return case
    return msgspec.structs.replace(case, domain=entry.domain, task=entry.task)


def _processes(run: RunEntry, overrides: Overrides, parts: Sequence[str], case: Case) -> Iterator[Case]:
    count = 1 if overrides.tune else overrides.processes or run.processes
    name = "-".join(_UNFIT.sub("_", part.replace(":", "")).strip("_.") or "x" for part in parts)
    for process in range(1, count + 1):
        own = f"{name}-p{process}" if count > 1 else name
        yield msgspec.structs.replace(case, id=own, group=name, process=process)


def _options(run: RunEntry, overrides: Overrides, target: str, device: str, dtype: Dtype) -> ProfileOptions:
    program = run.kind in ("script", "module")
    return ProfileOptions(
        target=target,
        target_kind=run.kind,
        script_args=run.arguments,
        device=device,
        dtype=dtype,
        steps=overrides.steps or run.steps,
        warmup=None if program else run.warmup,
        seed=run.seed,
        functions=run.kind == "model",
        timeout_s=overrides.timeout_s or run.timeout_s,
    )
