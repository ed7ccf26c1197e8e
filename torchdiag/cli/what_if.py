"""`torchdiag what-if`: how long a step would take without something."""

from __future__ import annotations

from typing import Annotated

import typer


def run(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="A trace file, or the folder of a run.")],
    remove: Annotated[
        list[str],
        typer.Option(
            help="What to take away: sync, python, a rule's id, or a line (train.py:88); may be repeated.",
            metavar="sync|python|RULE|FILE:LINE",
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Replay the steps of a trace without something, and say how long they would take."""
    import os  # noqa: PLC0415

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `breakdown`

    from torchdiag import api  # noqa: PLC0415
    from torchdiag.diagnosis.what_if import what_if  # noqa: PLC0415
    from torchdiag.report import what_if_words  # noqa: PLC0415
    from torchdiag.report.plain_text import plain  # noqa: PLC0415
    from torchdiag.report.progress import reading  # noqa: PLC0415
    from torchdiag.timeline.facts.facts import Facts  # noqa: PLC0415

    with reading(plain(trace)) as progress:
        facts = Facts.of(api.load(trace, progress=progress))
        answer = what_if(facts, tuple(remove))
    if json:
        from torchdiag.report.breakdown_json import dumps  # noqa: PLC0415

        print(dumps(what_if_words.to_dict(answer)))
    else:
        print(what_if_words.sentence(answer))
