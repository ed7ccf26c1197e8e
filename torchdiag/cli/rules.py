"""`torchdiag rules`: which bugs can be found, and what is known about each."""

from __future__ import annotations

from typing import Annotated

import typer


def run(
    rule: Annotated[str | None, typer.Argument(metavar="ID", help="Show what is known about this rule.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """List the performance bugs that `torchdiag diagnose` finds, or explain one of them."""
    from torchdiag.diagnosis import discovery  # noqa: PLC0415

    chosen = discovery.chosen([rule] if rule is not None else [], [])
    if json:
        from torchdiag.report.breakdown_json import dumps  # noqa: PLC0415
        from torchdiag.report.rules_page import to_dict  # noqa: PLC0415

        print(dumps(to_dict(chosen)))
    elif rule is not None:
        print(discovery.documentation(chosen[0]))
    else:
        import sys  # noqa: PLC0415

        from torchdiag.report.rules_page import print_rules  # noqa: PLC0415
        from torchdiag.report.terminal import canvas  # noqa: PLC0415

        print_rules(chosen, canvas(sys.stdout))
