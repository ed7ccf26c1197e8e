"""Checks a machine for what `torchdiag profile` needs: what works, what does not and why, and what to do about it."""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

import msgspec

from torchdiag._native import library
from torchdiag.capture import gpu_events, gpus, throw_probe
from torchdiag.capture.process import python_command
from torchdiag.capture.torch_probe import TorchFacts
from torchdiag.errors import TorchdiagError
from torchdiag.models.catalogue import MODELS

State = Literal["ok", "note", "missing", "broken"]

_OLDEST: Final = (2, 4)
_SECONDS: Final = 180.0
_ROOT: Final = Path(__file__).parents[2]
_COMPILERS: Final = ("c++", "g++", "clang++")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    `state`: `ok`; `note`, something to know; `missing`, a part that does without; `broken`, nothing can be profiled.
    `found` is what there is, `fix` what to do, empty where there is nothing to do.
    """

    name: str
    state: State
    found: str
    fix: str = ""


def checks() -> Iterator[Check]:
    """The checks, one by one as they are made; asking torch takes seconds."""
    yield _versions()
    yield _scanner()
    facts, trouble = torch_facts()
    yield _torch(facts, trouble)
    if facts is not None:
        yield _device(facts)
        yield from gpu_event_checks(facts)
    yield _throws()
    yield _exceptions()
    yield _models()
    yield from _load()


def torch_facts() -> tuple[TorchFacts | None, str]:
    """What torch says of itself, or why it says nothing."""
    if importlib.util.find_spec("torch") is None:
        return None, "not installed"
    command = python_command("torchdiag.capture.torch_probe", [], _ROOT)
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return None, f"gave no answer in {_SECONDS:.0f} s"
    except OSError as error:
        return None, f"could not be asked: {error.strerror or error}"
    lines = done.stdout.strip().splitlines()
    if done.returncode == 0 and lines:
        try:
            return msgspec.json.decode(lines[-1], type=TorchFacts), ""
        except msgspec.DecodeError:
            return None, f"gave an answer that is none: {lines[-1][:100]}"
    said = done.stderr.strip().splitlines()
    ending = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return None, f"cannot be used ({ending}): {said[-1][:300] if said else 'it said nothing'}"


def _versions() -> Check:
    try:
        own = metadata.version("torchdiag")
    except metadata.PackageNotFoundError:
        own = "(a checkout that is not installed)"
    return Check("torchdiag", "ok", f"{own}, Python {platform.python_version()}, {platform.platform()}")


def _scanner() -> Check:
    try:
        library.load()
    except (TorchdiagError, OSError) as error:
        return Check("trace reader", "broken", str(error), "install torchdiag again, with a C++ compiler at hand")
    return Check("trace reader", "ok", "the native scanner is there")


def _torch(facts: TorchFacts | None, trouble: str) -> Check:
    if facts is None:
        fix = "pip install torch" if trouble == "not installed" else "install torch again (https://pytorch.org)"
        return Check("torch", "broken", trouble, fix)
    built = f"built for CUDA {facts.cuda}" if facts.cuda else f"built for ROCm {facts.hip}" if facts.hip else ""
    found = ", ".join(part for part in (facts.version, built) if part)
    if _number(facts.version) < _OLDEST:
        return Check("torch", "broken", found, f"pip install 'torch>={_OLDEST[0]}.{_OLDEST[1]}'")
    if facts.trace_trouble or not facts.operators:
        why = facts.trace_trouble or "its trace of a multiplication holds no operator"
        return Check("torch", "broken", f"{found}; its profiler fails: {why}", "install torch again")
    return Check("torch", "ok", f"{found}, its profiler works")


def _device(facts: TorchFacts) -> Check:
    if facts.devices:
        names = ", ".join(f"{facts.kind}:{number} {name}" for number, name in enumerate(facts.devices))
        driver = gpus.driver() if facts.kind == "cuda" and facts.cuda else None
        return Check("device", "ok", names + (f", driver {driver}" if driver else ""))
    reason, fix = gpu_events.why_no_device(facts)
    if not reason:
        return Check("device", "ok", "no accelerator here: models run on the CPU, small by default")
    return Check("device", "missing", reason, fix)


def gpu_event_checks(facts: TorchFacts) -> Iterator[Check]:
    """Whether the GPU's own work can be recorded, and what is in the way."""
    if facts.kernels is None or facts.kind == "mps":
        return
    if facts.kernels:
        yield Check("GPU events", "ok", f"{facts.kernels} kernels of a test were recorded")
        return
    found = list(gpu_events.obstacles())
    launched = f"{facts.launches} kernels" if facts.launches else "kernels"
    yield Check(
        "GPU events",
        "missing",
        f"{launched} of a test were launched, none was recorded: steps are timed on the GPU all the same, but when it "
        "idles, and why, is not seen",
        "" if found else "update the driver and torch; see https://pytorch.org/docs/stable/profiler.html",
    )
    for obstacle in found:
        yield Check("GPU events", "missing", obstacle.what, obstacle.fix)


def _throws() -> Check:
    state = throw_probe.available()
    if state.loadable:
        return Check("C++ exceptions", "ok", "the probe can be preloaded")
    compiler = next((name for name in _COMPILERS if shutil.which(name)), None)
    if sys.platform == "linux" and not throw_probe.LIBRARY.is_file():
        fix = "pip install --force-reinstall --no-binary torchdiag torchdiag"
        if compiler is None:
            fix = f"install a C++ compiler (apt install g++), then {fix}"
        return Check("C++ exceptions", "missing", state.reason, fix)
    return Check("C++ exceptions", "missing", state.reason)


def _exceptions() -> Check:
    if sys.version_info >= (3, 12):
        return Check("exceptions", "ok", "sys.monitoring: recording costs nothing where none is raised")
    return Check(
        "exceptions",
        "ok",
        "sys.settrace: a short pass of its own, as it slows Python down; Python 3.12 records them at no such cost",
    )


def _models() -> Check:
    missing = sorted({package for entry in MODELS.values() for package in entry.missing_packages()} - {"torch"})
    usable = sum(not entry.missing_packages() for entry in MODELS.values())
    found = f"{usable} of {len(MODELS)} models can be run"
    if not missing:
        return Check("models", "ok", found)
    return Check(
        "models", "missing", f"{found}; the others need {', '.join(missing)}", f"pip install {' '.join(missing)}"
    )


def _load() -> Iterator[Check]:
    if not hasattr(os, "getloadavg"):
        return
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    load = os.getloadavg()[0]
    if load > cpus / 2 + 0.5:
        yield Check(
            "load",
            "note",
            f"{load:.1f} processes run on average, on {cpus} processors: step times will vary",
            "stop other programs while you measure",
        )


def _number(version: str) -> tuple[int, ...]:
    digits = version.partition("+")[0].split(".")[:2]
    return tuple(int(part) for part in digits if part.isdigit())
