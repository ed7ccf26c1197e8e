"""How a suite's run went, in a line and in a table of a line a run."""

from collections import Counter
from collections.abc import Sequence

from torchdiag.report.figures import counted, duration, size
from torchdiag.suite.cases import Case
from torchdiag.suite.folder import SuiteFolder
from torchdiag.suite.outcome import Outcome
from torchdiag.suite.page import Column, Page, left, table

_MOST_PROBLEMS = 3
_STATES = ("complete", "partial", "failed", "skipped", "interrupted")


def verdict(folder: SuiteFolder, outcomes: Sequence[Outcome]) -> str:
    """`smoke: 12 of 14 runs complete, 2 skipped`."""
    states = Counter(outcome.status for outcome in outcomes)
    planned = len(folder.plan.cases)
    words = [f"{states[state]} {state}" for state in _STATES[1:] if states[state]]
    missing = planned - len(outcomes)
    words += [f"{missing} not run yet"] if missing else []
    return f"{folder.plan.suite}: " + ", ".join([f"{states['complete']} of {counted(planned, 'run')} complete", *words])


def page(folder: SuiteFolder, outcomes: Sequence[Outcome]) -> Page:
    """The page at the end of `suite run`."""
    columns = [
        left("model"),
        left("mode"),
        left("setting"),
        Column("batch", spare=True),
        Column("step"),
        Column("samples/s", spare=True),
        Column("peak memory", spare=True),
        Column("took", spare=True),
        left("status"),
    ]
    settings = settings_of([outcome.case for outcome in outcomes])
    rows = [_row(outcome, setting) for outcome, setting in zip(outcomes, settings, strict=True)]
    return Page(verdict(folder, outcomes), _facts(outcomes), (table("", columns, rows),), tuple(_notes(outcomes)))


def _facts(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    measured = [outcome.figures for outcome in outcomes if outcome.figures is not None]
    devices = dict.fromkeys(figures.device_name for figures in measured if figures.device_name)
    versions = dict.fromkeys(figures.torch for figures in measured if figures.torch)
    return (*devices, *(f"torch {version}" for version in versions))


def settings_of(cases: Sequence[Case], *, by_process: bool = True) -> list[str]:
    """What tells each case from others of its model and mode: device, precision and so on, as far as they differ."""
    told = [
        (
            case.options.device,
            case.options.dtype,
            "eager" if case.options.compile is None else f"compile {case.options.compile}",
            "channels last" if case.options.channels_last else "",
            f"batch {case.options.batch_size}" if case.group.endswith(f"-b{case.options.batch_size}") else "",
            f"process {case.process}" if by_process else "",
        )
        for case in cases
    ]
    differ = [len(set(column)) > 1 for column in zip(*told, strict=True)]
    return [" ".join(word for word, shown in zip(words, differ, strict=True) if shown and word) for words in told]


def _row(outcome: Outcome, setting: str) -> tuple[str, ...]:
    figures = outcome.figures
    case = outcome.case
    start = (case.subject, case.mode, setting)
    if figures is None:
        return (*start, "", "", "", "", _took(outcome), state(outcome))
    throughput = "" if figures.samples_per_s is None else f"{figures.samples_per_s:,.1f}"
    memory = figures.gpu_peak_allocated_bytes or figures.peak_rss_bytes
    return (
        *start,
        "" if figures.batch_size is None else str(figures.batch_size),
        "" if figures.step_ns is None else duration(figures.step_ns),
        throughput,
        "" if memory is None else size(memory),
        _took(outcome),
        state(outcome),
    )


def _took(outcome: Outcome) -> str:
    return duration(round(outcome.wall_s * 1e9)) if outcome.wall_s else ""


def state(outcome: Outcome) -> str:
    """The status, with the reason where it is not complete."""
    return f"{outcome.status}: {outcome.message}" if outcome.message else outcome.status


def problems(outcomes: Sequence[Outcome]) -> list[str]:
    """What went wrong after runs that were measured, the most frequent first."""
    told = Counter(outcome.problem.rstrip(".") for outcome in outcomes if outcome.problem)
    return [f"{counted(count, 'run')}: {problem}." for problem, count in told.most_common(_MOST_PROBLEMS)]


def _notes(outcomes: Sequence[Outcome]) -> list[str]:
    lines = dict.fromkeys(
        outcome.message.partition("run `")[2].partition("`")[0] for outcome in outcomes if outcome.kind == "package"
    )
    packages = sorted({package for line in lines for package in line.removeprefix("pip install ").split()})
    notes = [f"To run what was skipped for want of a package: pip install {' '.join(packages)}"] if packages else []
    notes += problems(outcomes)
    if any(outcome.jobs > 1 for outcome in outcomes) and any(
        outcome.case.options.device == "cpu" and outcome.figures is not None for outcome in outcomes
    ):
        notes.append("Several runs shared the CPU, so their times include each other's disturbance.")
    return notes
