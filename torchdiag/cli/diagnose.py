"""`torchdiag diagnose`: which bugs make a trace slow, and what fixing them wins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TextIO

import typer

if TYPE_CHECKING:
    from torchdiag.findings.finding import Diagnosis


def run(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="A trace file, or the folder of a run; - for standard input.")
    ],
    rule: Annotated[list[str] | None, typer.Option(help="Ask only this rule; may be repeated.", metavar="ID")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Do not ask this rule.", metavar="ID")] = None,
    min_gain: Annotated[
        str | None, typer.Option(help="Leave out findings that win less of a step than this.", metavar="2%")
    ] = None,
    fail_on: Annotated[
        str | None, typer.Option(help="End with 1 for a finding this severe: high, medium, low.", metavar="SEVERITY")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every finding, not the first three.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown to paste into an issue.")] = False,
) -> None:
    """Name the bugs that make a model slow: the proof, the source line, the fix, and what it would win.

    Settings of the project (ignore, min-gain, fail-on) are read from [tool.torchdiag] of pyproject.toml.
    """
    import os  # noqa: PLC0415
    import sys  # noqa: PLC0415

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `breakdown`

    from torchdiag import api  # noqa: PLC0415
    from torchdiag.cli import configuration  # noqa: PLC0415
    from torchdiag.cli.diagnose_gate import fails, least_share, severity, without_small  # noqa: PLC0415
    from torchdiag.errors import TorchdiagError  # noqa: PLC0415
    from torchdiag.report.plain_text import plain  # noqa: PLC0415
    from torchdiag.report.progress import reading  # noqa: PLC0415

    if json and markdown:
        raise TorchdiagError("--json and --markdown exclude one another; choose one")
    settings = configuration.read()
    share = least_share(min_gain or settings.min_gain)
    gate = severity(fail_on or settings.fail_on)
    with reading(plain(trace)) as progress:
        found = api.diagnose(trace, rules=rule or (), ignore=(*(ignore or ()), *settings.ignore), progress=progress)
    found = without_small(found, share)
    if json:
        from torchdiag.report import breakdown_json, diagnosis_json  # noqa: PLC0415

        print(breakdown_json.dumps(diagnosis_json.to_dict(found)))
    elif markdown:
        from torchdiag.report.diagnosis_markdown import to_markdown  # noqa: PLC0415

        print(to_markdown(found, everything=everything), end="")
    else:
        _page(found, sys.stdout, everything=everything)
    if gate is not None and fails(found, gate):
        raise typer.Exit(1)


def _page(found: Diagnosis, stream: TextIO, *, everything: bool) -> None:
    from torchdiag.report.diagnosis_terminal import print_diagnosis  # noqa: PLC0415
    from torchdiag.report.terminal import canvas  # noqa: PLC0415

    print_diagnosis(found, canvas(stream), everything=everything)
