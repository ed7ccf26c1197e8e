"""`torchdiag suite run`: the runs of a suite, one after the other, into one folder."""

from __future__ import annotations

from typing import Annotated

import typer

from torchdiag.cli.profile import Mode, Size


def run(  # noqa: PLR0913, PLR0917 - one parameter an option
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="A suite's name (torchdiag suite list), or a .toml file.")
    ],
    jobs: Annotated[
        int | None,
        typer.Option(help="Runs at a time; one a GPU, or one, unless told.", min=1, metavar="N", show_default=False),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the suite's latest run, or with that in --out.")
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
    steps: Annotated[int | None, typer.Option(help="Timed steps of each run.", min=1, metavar="N")] = None,
    processes: Annotated[
        int | None, typer.Option(help="Processes in which each is measured, in turn.", min=1, metavar="N")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds a run may take.", min=0.1, metavar="S")] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Another Python with torchdiag: each run is made with it too, in turn, into FOLDER/against.",
            metavar="PYTHON",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            help="The folder for all of it, which must be new: torchdiag-runs/suite-NAME-TIME.", metavar="FOLDER"
        ),
    ] = None,
) -> None:
    """Run every model of a suite as it says, each in a process of its own, and keep everything in one folder.

    A run that crashes, hangs, or takes too much memory ends alone. Ctrl-C keeps what is done, and so does a kill:
    --resume goes on. A model whose package is missing is skipped, with what to install.

    Ends with 0 when every run was made or skipped, 2 when some failed, 130 when interrupted.
    """
    from torchdiag.capture import accelerators  # noqa: PLC0415
    from torchdiag.cli.suite_going import go  # noqa: PLC0415
    from torchdiag.errors import TorchdiagError  # noqa: PLC0415
    from torchdiag.suite import folder as folders  # noqa: PLC0415
    from torchdiag.suite import other_python, shipped  # noqa: PLC0415
    from torchdiag.suite.cases import Overrides, choose, plan, refreshed  # noqa: PLC0415

    if resume:
        given = {
            "--against": against,
            "--size": size,
            "--device": device,
            "--mode": mode,
            "--steps": steps,
            "--processes": processes,
        }
        useless = [name for name, value in {**given, "--timeout": timeout}.items() if value]
        if useless:
            raise TorchdiagError(f"--resume goes on as the run began; {' and '.join(useless)} cannot change that")
        name = shipped.find(suite).name
        folder = folders.read(folders.latest(name) if out is None else out)
        if folder.plan.suite != name:
            raise TorchdiagError(f"{folder.path} holds a run of the suite {folder.plan.suite}, not of {name}")
        cases = [refreshed(case) for case in choose(folder.plan.cases, tuple(only or ()), name)]
        go(folder, cases, accelerators.find(), jobs)
        return
    chosen = shipped.find(suite)
    seen = accelerators.find()
    overrides = Overrides(
        only=tuple(only or ()),
        size=None if size is None else size.value,
        devices=tuple(device or ()),
        modes=() if mode is None else (mode.value,),
        steps=steps,
        processes=processes,
        timeout_s=timeout,
    )
    if against is not None:
        other_python.check(against)
    cases = plan(chosen, overrides, seen.kind)
    folder = folders.make(out, chosen.name, chosen.description, cases)
    if against is not None:
        inner = str(folder.path / folders.AGAINST)
        folders.make(inner, chosen.name, chosen.description, cases, python=against)
    go(folder, cases, seen, jobs)
