"""What the page of a breakdown says, before anyone decides how it looks.

The terminal and the notebook both draw these values, so that they never disagree about a figure. All shares are whole
tenths of a percent, handed down from the window to the headline, to states and causes, to places: what belongs
together adds up exactly as displayed. Every text is safe to show.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torchdiag.report import breakdown_words as words
from torchdiag.report.figures import apportion, count, counted, rough_percent
from torchdiag.report.plain_text import plain, shorten
from torchdiag.report.recorded_page import RecordedPage, recorded_page
from torchdiag.report.steps_page import StepsPage, steps_page
from torchdiag.timeline.result import (
    STATE_NAMES,
    Breakdown,
    Cause,
    DeviceBreakdown,
    HostBreakdown,
    IdleCause,
    TraceSummary,
)
from torchdiag.trace.quality import Quality

Tone = Literal["active", "transfer", "python", "idle", "loader"]

ELSEWHERE = "elsewhere"
"""The places of a cause that are not listed."""

_LONGEST_FACT = 30
_SMALL_TENTHS = 10
"""Causes below one percent show a single place, those that round to nothing none."""


@dataclass(frozen=True, slots=True)
class Part:
    """One segment of a bar."""

    label: str
    tone: Tone
    tenths: int
    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the account of a window: a state (depth 0), a cause (1) or a place (2)."""

    depth: int
    label: str
    meaning: str
    tone: Tone
    tenths: int
    nanoseconds: int
    occurrences: int | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """Where the time of one device, or of the host, went.

    `parts` make the bar. `lines` account for the whole window; `places` are parts of the same time, seen otherwise.
    """

    title: str
    parts: tuple[Part, ...]
    lines: tuple[Line, ...]
    places: tuple[Line, ...] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Everything one page says: `answer` is its first line, `facts` what was read."""

    answer: str
    facts: tuple[str, ...]
    accounts: tuple[Account, ...]
    steps: StepsPage | None
    notes: tuple[str, ...]
    recorded: RecordedPage | None = None


def compose(breakdown: Breakdown) -> Page:
    """The page of a breakdown."""
    accounts = [_device_account(breakdown, device) for device in breakdown.devices]
    if not accounts and breakdown.host is not None:
        accounts.append(_host_account(breakdown, breakdown.host))
    notes = _notes(breakdown)
    return Page(
        words.answer(breakdown),
        (*_facts(breakdown.trace), *([f"{counted(len(notes), 'note')} below"] if notes else [])),
        tuple(accounts),
        steps_page(breakdown),
        tuple(notes),
        recorded_page(breakdown.recorded),
    )


def _facts(trace: TraceSummary) -> tuple[str, ...]:
    facts = ["standard input" if trace.path == "-" else plain(trace.path), counted(trace.events, "event")]
    if trace.torch:
        facts.append(f"torch {shorten(plain(trace.torch), _LONGEST_FACT)}")
    if trace.ranks:
        ranks = ", ".join(map(str, trace.ranks))
        facts.append(f"rank {ranks}" if len(trace.ranks) == 1 else f"ranks {ranks}")
    return tuple(facts)


def _notes(breakdown: Breakdown) -> list[str]:
    # The page of a host trace says so in its first line.
    notes = [_sentence(note) for note in breakdown.trace.quality if note.code != words.HOST_ONLY]
    if breakdown.steps_source == "none" and breakdown.devices:
        notes.append("No step marks and no period in the kernels: steps are not told apart.")
    return notes


def _sentence(note: Quality) -> str:
    text = plain(note.message).rstrip(".")
    if note.count > 1 and count(note.count) not in text:
        text += f" ({count(note.count)} times)"
    return f"{text[:1].upper()}{text[1:]}."


def _device_account(breakdown: Breakdown, device: DeviceBreakdown) -> Account:
    headline = device.headline
    shares = apportion([headline.active, headline.transfer, headline.python_overhead, headline.idle], 1000)
    active, transfer, python, idle = shares
    parts = (
        Part("active", "active", active, headline.active),
        Part("transfer", "transfer", transfer, headline.transfer),
        Part("Python", "python", python, headline.python_overhead),
        Part("idle", "idle", idle, headline.idle),
    )
    states = device.states
    working = apportion([states.compute, states.communication, states.memory], active)
    tenths = dict(zip(STATE_NAMES, [*working, transfer, python + idle], strict=True))
    lines: list[Line] = []
    for name in STATE_NAMES:
        tone: Tone = "transfer" if name == "transfer" else "idle" if name == "idle" else "active"
        lines.append(Line(0, name, words.STATES[name], tone, tenths[name], getattr(states, name)))
    lines.extend(_cause_lines(device.causes, python, idle))
    return Account(_device_title(breakdown, device), parts, tuple(lines))


def _device_title(breakdown: Breakdown, device: DeviceBreakdown) -> str:
    # A trace that does not name its device still tells the vendor.
    known = plain(device.kind if device.name in {"", f"device {device.id}"} else device.name)
    title = words.device_name(device)
    if known not in {"", "GPU", title.split()[0]}:
        title += f" ({known})"
    covered = words.window_words(breakdown, device.window)
    if device.window.source == "activity":
        covered += " from its first to its last activity"
    return f"{title} over {covered}"


def _cause_lines(causes: Sequence[IdleCause], python_tenths: int, idle_tenths: int) -> list[Line]:
    others = [cause for cause in causes if cause.cause is not Cause.PYTHON]
    tenths = dict(
        zip((cause.cause for cause in others), apportion([cause.idle_ns for cause in others], idle_tenths), strict=True)
    )
    tenths[Cause.PYTHON] = python_tenths
    costly = sorted((cause for cause in causes if cause.idle_ns), key=lambda cause: -cause.idle_ns)
    tiny = [cause for cause in costly if not tenths[cause.cause]]
    lines: list[Line] = []
    for cause in costly:
        if len(tiny) > 1 and cause in tiny:
            continue
        label, meaning = words.CAUSES[cause.cause]
        tone: Tone = "python" if cause.cause is Cause.PYTHON else "idle"
        share = tenths[cause.cause]
        lines.append(Line(1, label, meaning, tone, share, cause.idle_ns, cause.count))
        if share >= _SMALL_TENTHS:
            lines.extend(_place_lines(cause, share, tone))
        elif share and cause.places:
            lines.append(_place_lines(cause, share, tone)[0])
    if len(tiny) > 1:
        names = ", ".join(words.CAUSES[cause.cause][0] for cause in tiny)
        spent, times = sum(cause.idle_ns for cause in tiny), sum(cause.count for cause in tiny)
        lines.append(Line(1, f"others: {names}", "", "idle", 0, spent, times))
    return lines


def _place_lines(cause: IdleCause, cause_tenths: int, tone: Tone) -> list[Line]:
    places = cause.places
    rest_ns = max(cause.idle_ns - sum(place.idle_ns for place in places), 0)
    *tenths, rest_tenths = apportion([*(place.idle_ns for place in places), rest_ns], cause_tenths)
    lines = [
        Line(2, plain(place.label), "", tone, share, place.idle_ns, place.count)
        for place, share in zip(places, tenths, strict=True)
    ]
    if places and rest_tenths:
        rest_count = cause.count - sum(place.count for place in places)
        lines.append(Line(2, ELSEWHERE, "", tone, rest_tenths, rest_ns, rest_count if rest_count > 0 else None))
    return lines


def _host_account(breakdown: Breakdown, host: HostBreakdown) -> Account:
    kinds: tuple[tuple[str, str, Tone, int], ...] = (
        ("operators", "PyTorch operators", "active", host.operator_ns),
        ("runtime", "calls into the GPU's runtime", "transfer", host.runtime_ns),
        ("Python", "Python code", "python", host.python_ns),
        ("data loader", "no batch ready", "loader", host.dataloader_ns),
        ("uncovered", "no event in the trace", "idle", host.uncovered_ns),
    )
    shares = apportion([nanoseconds for *_, nanoseconds in kinds], 1000)
    parts = tuple(
        Part(label, tone, share, nanoseconds)
        for (label, _, tone, nanoseconds), share in zip(kinds, shares, strict=True)
    )
    lines = tuple(
        Line(0, label, meaning, tone, share, nanoseconds)
        for (label, meaning, tone, nanoseconds), share in zip(kinds, shares, strict=True)
    )
    length = host.window.length_ns
    tenths = [apportion([place.idle_ns, length - place.idle_ns], 1000)[0] for place in host.places]
    places = tuple(
        Line(2, plain(place.label), "", "python", share, place.idle_ns, place.count)
        for place, share in zip(host.places, tenths, strict=True)
    )
    remark = ""
    if host.cpu_active_ns:
        remark = f"On one thread or another, operators ran {rough_percent(host.cpu_active_ns, length)} of the time."
    thread = plain(host.thread) or "unknown"
    title = f"Main thread ({thread}) over {words.window_words(breakdown, host.window)}"
    return Account(title, parts, lines, places, remark)


def numbers(line: Line) -> str:
    """The occurrences of a line, empty where they are not counted."""
    return "" if line.occurrences is None else count(line.occurrences)
