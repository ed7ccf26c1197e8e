"""`torchdiag suite compare`: two runs of a suite against each other."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class FailOn(StrEnum):
    """What makes the command end with 1."""

    REGRESSION = "regression"


def run(
    a: Annotated[str, typer.Argument(metavar="A", help="The folder of a suite's run: how it was.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another: how it is.")],
    fail_on: Annotated[
        FailOn | None, typer.Option(help="End with 1 where B is slower, counts more, or broke.", show_default=False)
    ] = None,
    min_effect: Annotated[
        float, typer.Option(help="Smaller changes are none, in percent.", min=0, metavar="PERCENT")
    ] = 3.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Say what became slower or faster from A to B, what counts differ, and what broke.

    Times are compared by all their steps in several processes (--processes 5 of suite run), by a permutation test and
    a smallest effect. Kernels, launches, copies, bytes, waits, operators, exceptions and peak memory of the GPU are
    compared exactly.

    Ends with 0; with 1 where --fail-on regression finds one.
    """
    import json as json_text  # noqa: PLC0415
    import sys  # noqa: PLC0415

    from torchdiag.errors import TorchdiagError  # noqa: PLC0415
    from torchdiag.report.terminal import canvas  # noqa: PLC0415
    from torchdiag.suite import comparing, comparison_page, folder  # noqa: PLC0415
    from torchdiag.suite.page_markdown import to_markdown  # noqa: PLC0415
    from torchdiag.suite.page_terminal import print_page  # noqa: PLC0415

    if json and markdown:
        raise TorchdiagError("--json and --markdown are two forms: choose one")
    share = min_effect / 100
    found = comparing.compare(folder.read(a), folder.read(b), min_effect=share)
    if not found.changes:
        raise TorchdiagError(f"{a} and {b} have no run in common that was made in both")
    if json:
        print(json_text.dumps(comparison_page.document(found, share), indent=2))
    elif markdown:
        print(to_markdown(comparison_page.page(found, share)), end="")
    else:
        print_page(comparison_page.page(found, share), canvas(sys.stdout))
    sys.stdout.flush()
    if fail_on is not None and found.regressions:
        raise typer.Exit(1)
