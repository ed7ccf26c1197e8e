"""`torchdiag profile`: run something, measure it, and say where its time goes."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from pathlib import Path

    from torchdiag.findings.finding import Diagnosis
    from torchdiag.history.profile_options import ProfileOptions
    from torchdiag.profiling import Profile

_COMPILE_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class Mode(StrEnum):
    """What a model is made to do."""

    TRAIN = "train"
    EVAL = "eval"


class Dtype(StrEnum):
    """Precisions; `amp` is autocast."""

    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    AMP = "amp"


class Size(StrEnum):
    """Sizes of a model."""

    REAL = "real"
    TINY = "tiny"


class CompileMode(StrEnum):
    """Modes of `torch.compile`."""

    DEFAULT = "default"
    REDUCE_OVERHEAD = "reduce-overhead"
    MAX_AUTOTUNE = "max-autotune"
    MAX_AUTOTUNE_NO_CUDAGRAPHS = "max-autotune-no-cudagraphs"


class ProfileCommand(TyperCommand):
    """The command, whose `--compile` may stand alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a lone `--compile` its mode; what follows `--` is the target's."""
        own = args[: args.index("--")] if "--" in args else args
        for place in range(len(own) - 1, -1, -1):
            if own[place] == "--compile" and (place + 1 == len(own) or own[place + 1] not in _COMPILE_MODES):
                own = [*own[: place + 1], "default", *own[place + 1 :]]
        return super().parse_args(ctx, [*own, *args[args.index("--") :]] if "--" in args else own)


def run(  # noqa: PLR0913, PLR0917 - one parameter an option
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET", help="A model (--list), a script (train.py), or a function (pkg.module:step)."
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGS...]", help="Arguments of the script.", show_default=False)
    ] = None,
    module: Annotated[
        str | None, typer.Option("--module", "-m", metavar="MODULE", help="Run a module as `python -m` does.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, xpu or mps.", metavar="DEVICE")] = "auto",
    mode: Annotated[
        Mode | None, typer.Option(help="Train the model (what is done unless told), or run it.", show_default=False)
    ] = None,
    batch_size: Annotated[
        str | None, typer.Option(help="A number, or tune: the smallest that is within 1 % of the fastest.", metavar="N")
    ] = None,
    dtype: Annotated[
        Dtype | None, typer.Option(help="Precision, fp32 unless told; amp is autocast.", show_default=False)
    ] = None,
    compile: Annotated[
        CompileMode | None,
        typer.Option(
            "--compile",
            metavar="[MODE]",
            help="Compile the model: default, reduce-overhead, max-autotune or max-autotune-no-cudagraphs.",
        ),
    ] = None,
    channels_last: Annotated[bool, typer.Option("--channels-last", help="Lay images out channels last.")] = False,
    size: Annotated[
        Size | None,
        typer.Option(help="The model's size: tiny on a CPU, real on a GPU unless told.", show_default=False),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Timed steps.", min=1, metavar="N", show_default=False)] = None,
    warmup: Annotated[
        int | None,
        typer.Option(
            help="Steps before, of a model or function; until steady.", min=0, metavar="N", show_default=False
        ),
    ] = None,
    skip: Annotated[
        int | None,
        typer.Option(help="Steps of a script to leave out; until steady.", min=0, metavar="N", show_default=False),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Measure a script by stretches of time, not steps.", min=0.01, metavar="S", show_default=False
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of weights and inputs, 0 unless told.", metavar="N", show_default=False)
    ] = None,
    no_stack: Annotated[bool, typer.Option("--no-stack", help="Record no Python stacks.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Record allocations in the traces.")] = False,
    out: Annotated[
        str | None,
        typer.Option(
            help="The run's folder, which must be new: torchdiag-runs/NAME-TIME.", metavar="FOLDER", show_default=False
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")] = False,
    max_trace_mb: Annotated[
        int, typer.Option(help="Record fewer steps where the text of a trace would be larger.", min=1, metavar="MB")
    ] = 200,
    timeout: Annotated[
        float | None,
        typer.Option(help="Give up after so many seconds.", min=0.1, metavar="S", show_default=False),
    ] = None,
    finish: Annotated[bool, typer.Option("--finish", help="Let a script run to its end once measured.")] = False,
    list_models: Annotated[bool, typer.Option("--list", help="List the models and exit.")] = False,
) -> None:
    """Run a model, a script or a function, and say where its time goes, in exact figures and lines of code.

    It runs in a process of its own: first without a profiler, which gives its true speed, then recorded lightly, which
    gives the breakdown, then with stacks, which give the lines, and last with an eye on exceptions. Everything is kept
    in a folder that the other commands read.

    A script's own options follow two dashes: torchdiag profile train.py -- --epochs 1

    Ends with 0 when all was measured, 2 when the target failed or something was misspelled, 130 when interrupted.
    """
    from datetime import datetime  # noqa: PLC0415

    from torchdiag.capture import targets  # noqa: PLC0415
    from torchdiag.cli import profile_checks  # noqa: PLC0415
    from torchdiag.errors import TorchdiagError  # noqa: PLC0415
    from torchdiag.history import run_folder  # noqa: PLC0415
    from torchdiag.history.profile_options import ProfileOptions  # noqa: PLC0415

    if list_models:
        _list_models()
        return
    given = [*([] if target is None else [target]), *(arguments or [])]
    if module is not None:
        name, script_args = module, given
    elif given:
        name, *script_args = given
    else:
        raise TorchdiagError("name what to profile: a model (--list names them), train.py, or pkg.module:function")
    kind = targets.kind_of(name, module=module is not None)
    if script_args and kind in ("model", "function"):
        raise TorchdiagError(f"{name} is a {kind} and takes no arguments, but {' '.join(script_args)} followed it")
    options = ProfileOptions(
        target=name,
        target_kind=kind,
        script_args=tuple(script_args),
        device=device,
        mode="train" if mode is None else mode.value,
        batch_size=profile_checks.batch_size(batch_size),
        dtype="fp32" if dtype is None else dtype.value,
        compile=None if compile is None else compile.value,
        channels_last=channels_last,
        size=None if size is None else size.value,
        steps=steps,
        warmup=warmup,
        skip=skip,
        seconds=seconds,
        seed=seed or 0,
        stack=not no_stack,
        memory=memory,
        timeout_s=timeout,
        max_trace_mb=max_trace_mb,
        finish=finish,
    )
    profile_checks.refuse_what_has_no_effect(
        options,
        {
            "--mode": mode is not None,
            "--batch-size": batch_size is not None,
            "--compile": compile is not None,
            "--channels-last": channels_last,
            "--size": size is not None,
            "--device": device != "auto",
            "--dtype": dtype is not None,
            "--seed": seed is not None,
            "--warmup": warmup is not None,
            "--skip": skip is not None,
            "--seconds": seconds is not None,
            "--finish": finish,
        },
    )
    targets.check(options)
    folder = run_folder.make(out, options, datetime.now())
    _show(_measured(options, folder), json=json)


def _measured(options: ProfileOptions, folder: Path) -> Profile:
    import sys  # noqa: PLC0415

    from torchdiag import profiling  # noqa: PLC0415
    from torchdiag.errors import TorchdiagError  # noqa: PLC0415
    from torchdiag.history import run_folder  # noqa: PLC0415
    from torchdiag.report.plain_text import plain  # noqa: PLC0415

    def tell(event: str) -> None:
        if sys.stderr.isatty():
            print(plain(event), file=sys.stderr, flush=True)

    try:
        return profiling.run(options, folder, tell)
    except TorchdiagError:
        run_folder.discard_empty(folder)
        raise


def _show(done: Profile, *, json: bool) -> None:
    """Print what was measured, and end as the run did."""
    import sys  # noqa: PLC0415

    from torchdiag.errors import TorchdiagError  # noqa: PLC0415
    from torchdiag.report import profile_words  # noqa: PLC0415

    if json:
        from torchdiag.report import profile_json  # noqa: PLC0415

        print(profile_json.dumps(done.result))
    else:
        from torchdiag.report.profile_terminal import print_profile  # noqa: PLC0415
        from torchdiag.report.terminal import canvas  # noqa: PLC0415

        print_profile(done.result, done.breakdown, _diagnosis(done), done.folder, canvas(sys.stdout))
    sys.stdout.flush()
    failure = done.result.failure
    if failure is not None and failure.kind == "interrupted":
        print(f"torchdiag: {profile_words.interrupted(done.result, done.folder)}", file=sys.stderr)
        raise typer.Exit(130)
    if failure is not None:
        raise TorchdiagError(profile_words.failed(failure, done.folder))
    if done.problem:
        raise TorchdiagError(done.problem)


def _diagnosis(done: Profile) -> Diagnosis | None:
    """What is wrong with what was run, where a trace tells."""
    from torchdiag import api  # noqa: PLC0415
    from torchdiag.errors import TorchdiagError  # noqa: PLC0415

    if done.breakdown is None:
        return None
    try:
        return api.diagnose(done.folder)
    except TorchdiagError:
        return None


def _list_models() -> None:
    from torchdiag.models.catalogue import MODELS  # noqa: PLC0415

    rows = [("model", "domain", "task", "modes", "needs")]
    for entry in MODELS.values():
        missing = entry.missing_packages()
        needs = f"{', '.join(missing)} (not installed)" if missing else ""
        rows.append((entry.name, entry.domain, entry.task, ", ".join(entry.modes), needs))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
