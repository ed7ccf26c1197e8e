"""`torchdiag open`: a trace in the Perfetto UI."""

from __future__ import annotations

from typing import Annotated

import typer


def run(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="The trace, or the folder of a run; - for standard input.")
    ],
    keep: Annotated[bool, typer.Option("--keep", help="Go on serving after the trace was fetched.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the link and open no browser.")] = False,
) -> None:
    """Show a trace in the Perfetto UI (https://ui.perfetto.dev), in the browser.

    The trace does not leave this machine: Perfetto's page reads it from 127.0.0.1:9001, where this file is served,
    to that page alone, until it was fetched once. The browser may ask once whether ui.perfetto.dev may reach
    devices on the local network: allow it. A damaged trace is served repaired; the file itself stays as it is.

    On a remote machine, forward the port first (ssh -L 9001:127.0.0.1:9001) and use --no-browser.
    """
    from torchdiag.cli.show_in_browser import show  # noqa: PLC0415
    from torchdiag.cli.viewable import viewable  # noqa: PLC0415
    from torchdiag.history.run_folder import trace_of  # noqa: PLC0415
    from torchdiag.report.serve import TraceServer  # noqa: PLC0415

    # The port first: scanning a large trace only to find it taken would be a waste.
    with TraceServer() as server, viewable(trace_of(trace)) as (file, name):
        show(server.link(name), no_browser)
        server.serve(file, name, keep=keep)
