"""The checks of `torchdiag doctor` on a terminal, each as soon as it is made, and as one document."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from rich.text import Text

from torchdiag.capture.doctor import Check
from torchdiag.report.plain_text import plain
from torchdiag.report.terminal import Canvas, pad

SCHEMA: Final = 1
_NAME_WIDTH: Final = 14
_STATES: Final = {
    "ok": ("ok", "green"),
    "note": ("note", "yellow"),
    "missing": ("missing", "yellow"),
    "broken": ("BROKEN", "bold bright_red"),
}
_STATE_WIDTH: Final = 7


def print_check(check: Check, canvas: Canvas) -> None:
    """Print one check: its state, what was found, and on lines of its own what to do."""
    state, style = _STATES[check.state]
    indent = " " * (_STATE_WIDTH + _NAME_WIDTH + 4)
    head = f"{pad(state, _STATE_WIDTH)}  {pad(check.name, _NAME_WIDTH)}  "
    width = max(canvas.width - len(indent), 20)
    for number, line in enumerate(Text(canvas.spell(plain(check.found))).wrap(canvas.console, width)):
        line.rstrip()
        start = Text(indent) if number else Text.assemble((head[:_STATE_WIDTH], style), head[_STATE_WIDTH:])
        canvas.line(start, Text(line.plain))
    if check.fix:
        canvas.paragraph(plain(check.fix), "bold", first=f"{indent}-> ", rest=f"{indent}   ")


def verdict(checks: Sequence[Check]) -> str:
    """One sentence on all of them."""
    broken = [check.name for check in checks if check.state == "broken"]
    if broken:
        return f"Nothing can be profiled here until this is mended: {', '.join(broken)}."
    missing = [check.name for check in checks if check.state == "missing"]
    if missing:
        return f"torchdiag can be used here; less is seen for lack of: {', '.join(dict.fromkeys(missing))}."
    return "All is in order."


def dumps(checks: Sequence[Check]) -> str:
    """One JSON document; `usable` is whether anything can be profiled."""
    usable = all(check.state != "broken" for check in checks)
    return json.dumps({"schema": SCHEMA, "usable": usable, "checks": [asdict(check) for check in checks]}, indent=1)
