"""`torchdiag repair`: valid JSON out of a damaged trace."""

from __future__ import annotations

from typing import Annotated

import typer


def run(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="The damaged trace, or the folder of a run; - for standard input.")
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Where to write; gzip when it ends in .gz; - for standard output."
        ),
    ],
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as one JSON document.")] = False,
) -> None:
    """Write valid JSON out of a damaged trace, and say what was kept, mended and dropped.

    The trace itself is never touched. OUT appears whole or not at all.
    """
    import sys  # noqa: PLC0415

    from torchdiag.cli.mending import mend  # noqa: PLC0415
    from torchdiag.cli.new_file import STANDARD_OUTPUT, refuse_same_file, writing  # noqa: PLC0415
    from torchdiag.errors import TorchdiagError  # noqa: PLC0415
    from torchdiag.history.run_folder import trace_of  # noqa: PLC0415
    from torchdiag.report import repair_words  # noqa: PLC0415
    from torchdiag.trace.quality import QualityLog  # noqa: PLC0415

    if json and output == STANDARD_OUTPUT:
        raise TorchdiagError("--json and -o - would both write to standard output; name a file for the trace")
    trace = trace_of(trace)
    refuse_same_file(trace, output)
    quality = QualityLog()
    with writing(output, force=force) as sink:
        report = mend(trace, sink, quality)
    for line in repair_words.lines(report, quality.notes):
        print(line, file=sys.stderr)
    if json:
        print(repair_words.dumps(trace, output, report, quality.notes))
