"""What every form of a diagnosis says in words."""

from collections.abc import Sequence
from itertools import groupby

from torchdiag.findings.finding import Diagnosis, Finding, Gain, Summary, Verdict
from torchdiag.report.figures import counted, duration
from torchdiag.report.plain_text import plain

SHOWN = 3
"""Findings shown unless all are asked for."""
VERDICTS: dict[Verdict, str] = {
    "exposed": "costs time now",
    "latent": "hidden behind GPU work now",
    "no-gain": "no gain expected",
    "cannot-tell": "cannot tell from this trace",
}


def headline(finding: Finding) -> str:
    """The finding in one line."""
    return plain(finding.title)


def verdict(finding: Finding) -> str:
    """What it costs: `costs time now, high: 4.20 ms a step (12.3 %)`."""
    words = VERDICTS[finding.verdict]
    if finding.verdict == "exposed" and finding.gain is not None:
        return f"{words}, {finding.severity}: {gain(finding.gain)} a step ({share(finding.gain_share)})"
    return words


def gain(found: Gain) -> str:
    """`4.20 ms (3.00 ms to 5.10 ms)`; one figure where the bounds are the same to three digits."""
    low, expected, high = (duration(round(value)) for value in (found.low_ns, found.expected_ns, found.high_ns))
    return expected if low == expected == high else f"{expected} ({low} to {high})"


def share(part: float) -> str:
    """`12.3 %`."""
    return f"{100 * part:.1f} %"


def numbers(summary: Summary) -> list[tuple[str, str]]:
    """The four numbers: name and figure."""
    return [
        ("time per step", duration(round(summary.step_ns))),
        ("GPU busy", "no GPU" if summary.gpu_busy is None else share(summary.gpu_busy)),
        ("kernels per step", f"{summary.kernels_per_step:,.4g}"),
        ("syncs per step", f"{summary.syncs_per_step:,.4g}"),
    ]


def basis(summary: Summary) -> str:
    """What the numbers are means over."""
    return counted(summary.steps, "step") if summary.steps else "the whole recording (no steps found)"


def sentence(diagnosis: Diagnosis) -> str:
    """The sentence to act on, safe to show."""
    return plain(diagnosis.summary.sentence)


def evidence(finding: Finding) -> str:
    """The proof in one line: how often, how long, which events."""
    parts = [f"{finding.count_per_step:.3g} a step"]
    if finding.accused_ns:
        parts.append(f"{duration(round(finding.accused_ns))} of each step")
    if finding.idle_ns:
        parts.append(f"{duration(round(finding.idle_ns))} of it with the GPU idle")
    if finding.events:
        rows = ", ".join(str(row) for row in finding.events[:3])
        parts.append(f"events {rows}{', ...' if len(finding.events) > 3 else ''}")
    return "; ".join(parts)


def place(finding: Finding) -> str:
    """File, line and function, then operator and module, of what is known; "" for nothing."""
    where = finding.where
    parts: list[str] = []
    if where.file is not None:
        parts.append(f"{where.file}:{where.line}" + (f" {where.function}" if where.function else ""))
    if where.operator is not None:
        parts.append(where.operator)
    if where.module is not None:
        parts.append(f"in {where.module}")
    return plain(", ".join(parts))


def shown(findings: Sequence[Finding], *, everything: bool) -> Sequence[Finding]:
    """The findings to show: those that matter first, or every one."""
    return findings if everything else findings[:SHOWN]


def unchecked(diagnosis: Diagnosis) -> list[str]:
    """One line for each thing that was not recorded: how many rules need it."""
    needs = sorted((need, item.rule) for item in diagnosis.unchecked for need in item.needs)
    return [
        f"{counted(len(list(rules)), 'rule')} could not be asked without {need}"
        for need, rules in groupby(needs, key=lambda pair: pair[0])
    ]
