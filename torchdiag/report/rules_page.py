"""The rules as a list, and the page of one."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rich.text import Text

from torchdiag.diagnosis.discovery import documentation
from torchdiag.findings.rule import Family, Rule
from torchdiag.report.terminal import Canvas

FAMILIES: dict[Family, str] = {
    Family.DATA: "Input pipeline",
    Family.SYNC: "Waiting for the device",
    Family.TRANSFER: "Copies between host and device",
    Family.MEMORY: "Memory",
    Family.COMPILE: "Compilation and warm-up",
    Family.PAUSE: "Pauses of the host",
    Family.LAUNCH: "Many small pieces of work",
    Family.COMMUNICATION: "Several devices",
    Family.KERNEL: "Kernels and number formats",
    Family.MEASUREMENT: "How it was measured",
}


def print_rules(rules: Sequence[Rule], canvas: Canvas) -> None:
    """Print one line a rule, by family."""
    width = max(len(rule.id) for rule in rules)
    for family, members in groupby(rules, key=lambda rule: rule.family):
        canvas.line(Text(FAMILIES[family], "bold"))
        for rule in members:
            first = f"  {rule.id:<{width}}  "
            canvas.paragraph(summary(rule), first=first, rest=" " * len(first))
        canvas.line()
    canvas.paragraph("`torchdiag rules ID` explains one.", "dim")


def to_dict(rules: Sequence[Rule]) -> dict[str, Any]:
    """The rules with their documentation as plain values."""
    return {
        "schema": 1,
        "rules": [
            {
                "id": rule.id,
                "family": rule.family.name.lower(),
                "needs": sorted(need.value for need in rule.needs),
                "summary": summary(rule),
                "documentation": documentation(rule),
            }
            for rule in rules
        ],
    }


def page(rule: Rule) -> str:
    """The page of a rule in Markdown, as `docs/rules/` holds it."""
    head, _, rest = documentation(rule).partition("\n")
    needs = "; ".join(sorted(need.value for need in rule.needs)) or "nothing beyond a trace"
    return f"# {rule.id}\n\n{head}\n\nFamily: {FAMILIES[rule.family]}. Needs: {needs}.\n{rest}\n"


def index(rules: Sequence[Rule]) -> str:
    """The list of all rules in Markdown."""
    lines = ["# Rules", "", "What `torchdiag diagnose` finds. Made from the rules' own documentation.", ""]
    for family, members in groupby(rules, key=lambda rule: rule.family):
        lines += [f"## {FAMILIES[family]}", ""]
        lines += [f"- [{rule.id}]({rule.id}.md): {summary(rule)}" for rule in members]
        lines.append("")
    return "\n".join(lines)


def summary(rule: Rule) -> str:
    """The first line of a rule's documentation."""
    return documentation(rule).partition("\n")[0]
