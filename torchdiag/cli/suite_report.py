"""`torchdiag suite report`: the figures of a suite's run."""

from __future__ import annotations

from typing import Annotated

import typer


def run(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a suite's run.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values, one line a run.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    html: Annotated[
        str | None,
        typer.Option(help="Write a page with plots there; - for standard output.", metavar="FILE", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file of --html.")] = False,
) -> None:
    """Show where the time of a suite's models went, by domain and by model, and what holds them back.

    Active, transfer, Python and idle shares in training and in inference (of the main thread's time, where no GPU was
    recorded), step times, memory, the findings over all models; training against inference, eager against compiled,
    and two devices side by side, where the suite measured both.
    """
    import sys  # noqa: PLC0415

    from torchdiag.cli.new_file import writing  # noqa: PLC0415
    from torchdiag.errors import TorchdiagError  # noqa: PLC0415
    from torchdiag.report.terminal import canvas  # noqa: PLC0415
    from torchdiag.suite import folder as folders  # noqa: PLC0415
    from torchdiag.suite import report_page  # noqa: PLC0415
    from torchdiag.suite.page_terminal import print_page  # noqa: PLC0415

    forms = {"--markdown": markdown, "--csv": csv, "--json": json, "--html": html is not None}
    given = [name for name, chosen in forms.items() if chosen]
    if len(given) > 1:
        raise TorchdiagError(f"{' and '.join(given)} are different forms: choose one")
    if force and html is None:
        raise TorchdiagError("--force is for --html")
    read = folders.read(folder)
    outcomes = read.outcomes()
    if not outcomes:
        raise TorchdiagError(f"nothing is done yet of the suite's run in {folder}")
    if csv:
        from torchdiag.suite.report_csv import to_csv  # noqa: PLC0415

        print(to_csv(outcomes), end="")
        return
    if json:
        from torchdiag.suite.report_json import dumps  # noqa: PLC0415

        print(dumps(read, outcomes))
        return
    page = report_page.page(read, outcomes)
    if html is not None:
        from torchdiag.suite.report_html import to_html  # noqa: PLC0415

        text = to_html(read, outcomes, page)
        with writing(html, force=force) as sink:
            sink(text.encode())
    elif markdown:
        from torchdiag.suite.page_markdown import to_markdown  # noqa: PLC0415

        print(to_markdown(page), end="")
    else:
        print_page(page, canvas(sys.stdout))
