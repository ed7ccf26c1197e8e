"""`torchdiag breakdown`: where the time of one trace went, or of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from torchdiag.cli.breakdown_options import Options
    from torchdiag.cli.breakdown_several import Form


def run(
    traces: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE", help="Trace files, folders of runs, directories or quoted patterns; - for standard input."
        ),
    ],
    device: Annotated[int | None, typer.Option(help="Only this device.", metavar="ID")] = None,
    steps: Annotated[
        str | None, typer.Option(help="Only these steps, counted from 0: 2:5, 3, :4, -2:", metavar="A:B")
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            help="Only this time after the first event: 12ms:40ms, 1.5s: (ns, us, ms, s). "
            "A number without a unit is nanoseconds of the trace's own clock, as in --json.",
            metavar="A:B",
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="Places listed for each cause.", min=0, metavar="N")] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values, a line a device.")] = False,
) -> None:
    """Say where every nanosecond of GPU time went, and which lines of code it waited for.

    One trace gives a page, several give a table. Ends with 2 when a trace could not be read.
    """
    from torchdiag.cli.breakdown_options import Options  # noqa: PLC0415
    from torchdiag.cli.trace_files import trace_files  # noqa: PLC0415
    from torchdiag.errors import TorchdiagError  # noqa: PLC0415

    if json and csv:
        raise TorchdiagError("--json and --csv exclude one another; choose one")
    paths = trace_files(traces)
    options = Options(steps, window, device, top)
    form: Form = "json" if json else "csv" if csv else "page"
    if len(paths) == 1:
        _print_one(paths[0], options, form)
        return
    from torchdiag.cli.breakdown_several import print_several  # noqa: PLC0415

    code = print_several(paths, options, form)
    if code:
        raise typer.Exit(code)


def _print_one(path: str, options: Options, form: Form) -> None:
    import os  # noqa: PLC0415
    import sys  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    # numpy starts a thread of its linear algebra for every core, and they spin; nothing here has a use for them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    from torchdiag.cli.reading import read  # noqa: PLC0415
    from torchdiag.report.plain_text import plain  # noqa: PLC0415
    from torchdiag.report.progress import reading  # noqa: PLC0415

    with reading(plain(path)) as progress:
        trace = path if Path(path).is_dir() else read(path, progress)

        from torchdiag import api  # noqa: PLC0415 - imported while the trace was read

        found = api.breakdown(
            trace,
            steps=options.steps,
            window=options.window,
            device=options.device,
            top=options.top,
            progress=progress,
        )
    if form == "json":
        from torchdiag.report import breakdown_json  # noqa: PLC0415

        print(breakdown_json.dumps(breakdown_json.to_dict(found)))
    elif form == "csv":
        from torchdiag.report import breakdown_csv, breakdown_rows  # noqa: PLC0415

        print(breakdown_csv.header() + breakdown_csv.lines(breakdown_rows.rows(found)), end="")
    else:
        from torchdiag.report.breakdown_terminal import print_breakdown  # noqa: PLC0415
        from torchdiag.report.terminal import canvas  # noqa: PLC0415

        print_breakdown(found, canvas(sys.stdout))
