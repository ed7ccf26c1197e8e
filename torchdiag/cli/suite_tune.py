"""`torchdiag suite tune`: the batch sizes at which a suite's models stop getting faster."""

from __future__ import annotations

from typing import Annotated

import typer

from torchdiag.cli.profile import Mode, Size


def run(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="A suite's name (torchdiag suite list), or a .toml file.")
    ],
    jobs: Annotated[
        int | None, typer.Option(help="Runs at a time; one a GPU, or one, unless told.", min=1, metavar="N")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the suite's latest tuning, or with that in --out.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only these models or runs; may be given again, and hold * and ?.", metavar="NAME"),
    ] = None,
    size: Annotated[Size | None, typer.Option(help="The models' size, whatever the suite says.")] = None,
    device: Annotated[
        list[str] | None, typer.Option(help="Devices in place of the suite's; may be given again.", metavar="DEVICE")
    ] = None,
    mode: Annotated[Mode | None, typer.Option(help="Only training, or only evaluation.")] = None,
    out: Annotated[
        str | None,
        typer.Option(
            help="The folder for all of it, which must be new: torchdiag-runs/suite-tune-NAME-TIME.", metavar="FOLDER"
        ),
    ] = None,
) -> None:
    """Find the batch size of every model of a suite: the smallest that is within 1 % of the fastest.

    Each size is tried in a process of its own. The sizes found are written as a suite, tuned.toml in the folder, that
    `torchdiag suite run` takes.
    """
    from torchdiag.capture import accelerators  # noqa: PLC0415
    from torchdiag.cli.suite_going import go  # noqa: PLC0415
    from torchdiag.errors import TorchdiagError  # noqa: PLC0415
    from torchdiag.suite import folder as folders  # noqa: PLC0415
    from torchdiag.suite import shipped, tuning  # noqa: PLC0415
    from torchdiag.suite.cases import Overrides, choose, plan, refreshed  # noqa: PLC0415

    chosen = shipped.find(suite)
    name = f"tune-{chosen.name}"
    seen = accelerators.find()
    if resume:
        useless = [text for text, value in {"--size": size, "--device": device, "--mode": mode}.items() if value]
        if useless:
            raise TorchdiagError(f"--resume goes on as the run began; {' and '.join(useless)} cannot change that")
        folder = folders.read(folders.latest(name) if out is None else out)
        cases = [refreshed(case) for case in choose(folder.plan.cases, tuple(only or ()), name)]
    else:
        overrides = Overrides(
            only=tuple(only or ()),
            size=None if size is None else size.value,
            devices=tuple(device or ()),
            modes=() if mode is None else (mode.value,),
            tune=True,
        )
        cases = plan(chosen, overrides, seen.kind)
        folder = folders.make(out, name, f"Batch sizes for {chosen.name}", cases)
    try:
        go(folder, cases, seen, jobs)
    finally:
        written = tuning.write(folder)
        if written is not None:
            print(f"The batch sizes found are in {written}, a suite for torchdiag suite run")
