"""`torchdiag suite list`: the suites and models there are."""

from __future__ import annotations

from typing import Annotated

import typer


def run(
    domain: Annotated[
        str | None, typer.Option(help="Only what is of this domain: vision, language, rl, ...", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """List the suites that come with torchdiag, and the models that suites are made of."""
    import json as json_text  # noqa: PLC0415
    import sys  # noqa: PLC0415

    from torchdiag.report.terminal import canvas  # noqa: PLC0415
    from torchdiag.suite import listing  # noqa: PLC0415
    from torchdiag.suite.page_terminal import print_page  # noqa: PLC0415

    chosen = None if domain is None else listing.domain_of(domain)
    if json:
        print(json_text.dumps(listing.document(chosen), indent=2))
    else:
        print_page(listing.page(chosen), canvas(sys.stdout))
