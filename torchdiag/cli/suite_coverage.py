"""`torchdiag suite coverage`: how much of PyTorch a suite's run exercised."""

from __future__ import annotations

from typing import Annotated

import typer


def run(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a suite's run.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document, with every name.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Count the distinct ATen operators and public functions of torch that the runs exercised.

    Against those of the models nearest to MLPerf; the TorchBench paper claims 2.3 times. How it is counted is said.
    """
    import json as json_text  # noqa: PLC0415
    import sys  # noqa: PLC0415

    from torchdiag.errors import TorchdiagError  # noqa: PLC0415
    from torchdiag.report.terminal import canvas  # noqa: PLC0415
    from torchdiag.suite import coverage_page  # noqa: PLC0415
    from torchdiag.suite import folder as folders  # noqa: PLC0415
    from torchdiag.suite.coverage import coverage  # noqa: PLC0415
    from torchdiag.suite.page_markdown import to_markdown  # noqa: PLC0415
    from torchdiag.suite.page_terminal import print_page  # noqa: PLC0415

    if json and markdown:
        raise TorchdiagError("--json and --markdown are two forms: choose one")
    found = coverage(folders.read(folder).outcomes())
    if not found.all.runs:
        raise TorchdiagError(f"no run in {folder} has recorded operators")
    if json:
        print(json_text.dumps(coverage_page.document(found), indent=2))
    elif markdown:
        print(to_markdown(coverage_page.page(found)), end="")
    else:
        print_page(coverage_page.page(found), canvas(sys.stdout))
