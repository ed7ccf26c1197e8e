"""The diagnosis in Markdown, ready to be pasted into an issue."""

import re

from torchdiag.findings.finding import Diagnosis, Finding
from torchdiag.report import diagnosis_words as words
from torchdiag.report.plain_text import plain

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!@&])")


def to_markdown(diagnosis: Diagnosis, *, everything: bool) -> str:
    """Verdict, four numbers, findings and environment. Texts of the trace are escaped: none is markup."""
    lines = [f"**{_escaped(diagnosis.summary.sentence)}**", ""]
    names = [name for name, _ in words.numbers(diagnosis.summary)]
    figures = [figure for _, figure in words.numbers(diagnosis.summary)]
    lines += [_row(names), _row(["---"] * len(names)), _row(figures), ""]
    shown = words.shown(diagnosis.findings, everything=everything)
    for number, finding in enumerate(shown, 1):
        lines += _finding(number, finding)
    left = len(diagnosis.findings) - len(shown)
    if left:
        lines += [f"{left} more found.", ""]
    elif not shown:
        lines += ["No rule found a bug.", ""]
    lines += [f"- {_escaped(line)}" for line in words.unchecked(diagnosis)]
    lines += ["", "<details><summary>Environment</summary>", ""]
    lines += [f"- trace: {_code(diagnosis.path)}", f"- device: {_escaped(diagnosis.device)}"]
    lines += [f"- torch: {_escaped(diagnosis.torch or 'not told by the trace')}"]
    lines += [f"- means over {words.basis(diagnosis.summary)}"]
    lines += [f"- {_escaped(note.message)}" for note in diagnosis.quality]
    lines += ["", "</details>", ""]
    return "\n".join(lines)


def _finding(number: int, finding: Finding) -> list[str]:
    lines = [f"### {number}. {_escaped(finding.title)}", ""]
    lines += [f"`{finding.rule}`: {words.verdict(finding)}, confidence {finding.confidence}", ""]
    if place := words.place(finding):
        lines.append(f"- where: {_code(place)}")
    lines += [
        f"- proof: {words.evidence(finding)}",
        f"- why: {_escaped(finding.reason)}",
        f"- fix: {_escaped(finding.fix)}",
        "",
    ]
    return lines


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", plain(text))


def _code(text: str) -> str:
    """A code span that the text cannot end."""
    text = plain(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{text}{padding}{fence}"
