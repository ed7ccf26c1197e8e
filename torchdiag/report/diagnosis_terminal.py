"""The diagnosis on a terminal: the sentence to act on, then the findings that matter."""

from rich.text import Text

from torchdiag.findings.finding import Diagnosis, Finding
from torchdiag.report import diagnosis_words as words
from torchdiag.report.figures import counted
from torchdiag.report.plain_text import plain
from torchdiag.report.terminal import Canvas

_STYLES = {"high": "bold bright_red", "medium": "bold yellow", "low": "bold cyan", "info": "bold"}
_INDENT = "   "


def print_diagnosis(diagnosis: Diagnosis, canvas: Canvas, *, everything: bool) -> None:
    """Print the page: three findings unless `everything` is asked for."""
    canvas.paragraph(words.sentence(diagnosis), "bold")
    canvas.line()
    canvas.line(canvas.text(canvas.fit(plain(diagnosis.path), canvas.width), "dim"))
    facts = [f"{name} {figure}" for name, figure in words.numbers(diagnosis.summary)]
    canvas.paragraph(" · ".join([*facts, f"over {words.basis(diagnosis.summary)}", plain(diagnosis.device)]), "dim")
    shown = words.shown(diagnosis.findings, everything=everything)
    for number, finding in enumerate(shown, 1):
        canvas.line()
        _finding(number, finding, canvas)
    left = len(diagnosis.findings) - len(shown)
    canvas.line()
    if left:
        canvas.paragraph(f"{counted(left, 'more finding')}: --all shows them.", "dim")
    elif not diagnosis.findings:
        canvas.paragraph("No rule found a bug.")
    for line in words.unchecked(diagnosis):
        canvas.paragraph(line + ".", "dim", rest="  ")
    if diagnosis.quality:
        canvas.line()
        canvas.line(Text("About this trace", "bold"))
        for note in diagnosis.quality:
            canvas.paragraph(plain(note.message), first="- ", rest="  ")


def print_top(diagnosis: Diagnosis, canvas: Canvas) -> None:
    """Print the sentence and, a few lines each, the findings that cost time now: the end of another page."""
    canvas.paragraph(words.sentence(diagnosis), "bold")
    costly = [finding for finding in diagnosis.findings if finding.verdict == "exposed"]
    for number, finding in enumerate(costly[: words.SHOWN], 1):
        canvas.paragraph(words.headline(finding), first=f"{number}. ", rest=_INDENT)
        canvas.paragraph(f"{words.verdict(finding)} · {finding.rule}", "dim", first=_INDENT, rest=_INDENT)


def _finding(number: int, finding: Finding, canvas: Canvas) -> None:
    style = _STYLES[finding.severity]
    canvas.paragraph(words.headline(finding), style, first=f"{number}. ", rest=_INDENT)
    verdict = f"{words.verdict(finding)} · {finding.rule} · confidence {finding.confidence}"
    canvas.paragraph(verdict, first=_INDENT, rest=_INDENT)
    if place := words.place(finding):
        _labelled("where", place, canvas)
    _labelled("proof", words.evidence(finding), canvas)
    _labelled("why", plain(finding.reason), canvas)
    _labelled("fix", plain(finding.fix), canvas)


def _labelled(label: str, text: str, canvas: Canvas) -> None:
    first = f"{_INDENT}{label:<6}"
    canvas.paragraph(text, first=first, rest=" " * len(first))
