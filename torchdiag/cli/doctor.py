"""`torchdiag doctor`: what of torchdiag works on this machine."""

from __future__ import annotations

from typing import Annotated

import typer


def run(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check this machine: torch and its device, whether GPU events can be recorded, and what to mend.

    Ends with 0 when something can be profiled here, else with 2.
    """
    import sys  # noqa: PLC0415

    from torchdiag.capture import doctor  # noqa: PLC0415
    from torchdiag.report import doctor_terminal  # noqa: PLC0415
    from torchdiag.report.terminal import canvas  # noqa: PLC0415

    screen = canvas(sys.stdout)
    made: list[doctor.Check] = []
    for check in doctor.checks():
        made.append(check)
        if not json:
            doctor_terminal.print_check(check, screen)
            sys.stdout.flush()
    if json:
        print(doctor_terminal.dumps(made))
    else:
        screen.line()
        screen.paragraph(doctor_terminal.verdict(made), "bold")
    if any(check.state == "broken" for check in made):
        raise typer.Exit(2)
